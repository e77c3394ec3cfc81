"""Serves moto's ECS in memory with a cluster that takes the bench's tasks; prints its port, then waits
for its standard input to end."""
import json
import sys

import boto3
from moto.ec2 import utils as ec2_utils
from moto.server import ThreadedMotoServer


def main():
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    options = {
        "endpoint_url": f"http://127.0.0.1:{port}",
        "region_name": "us-east-1",
        "aws_access_key_id": "any",
        "aws_secret_access_key": "any",
    }
    ecs = boto3.client("ecs", **options)
    ec2 = boto3.resource("ec2", **options)
    image = next(iter(ec2.images.all())).id
    ecs.create_cluster(clusterName="default")
    for instance in ec2.create_instances(ImageId=image, MinCount=8, MaxCount=8):
        document = json.dumps(ec2_utils.generate_instance_identity_document(instance))
        ecs.register_container_instance(cluster="default", instanceIdentityDocument=document)
    ecs.register_task_definition(family="bench", containerDefinitions=[
        {"name": "main", "image": "i", "cpu": 1, "memory": 6, "essential": True}])
    print(port, flush=True)
    sys.stdin.read()


main()
