#!/usr/bin/env python3
"""What the demo checks, asked of the ECS API itself.

usage: demo-facts.py SOCKET gpus       one line a GPU: id, mode, MiB left, MiB in all, containers
       demo-facts.py SOCKET containers one line a running container: family, name, runtime id, GPU

SOCKET is the installation's api.sock: on it nothing needs to be signed.
"""
import http.client
import json
import socket
import sys


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=10)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def call(endpoint, operation, **members):
    connection = UnixConnection(endpoint)
    connection.request(
        "POST",
        "/",
        json.dumps(members),
        {
            "Content-Type": "application/x-amz-json-1.1",
            "X-Amz-Target": "AmazonEC2ContainerServiceV20141113." + operation,
        },
    )
    reply = connection.getresponse()
    if reply.status != 200:
        sys.exit(f"{operation}: {reply.status} {reply.read().decode()}")
    return json.load(reply)


def gpus(endpoint):
    arns = call(endpoint, "ListContainerInstances")["containerInstanceArns"]
    if not arns:
        return
    reply = call(endpoint, "DescribeContainerInstances", containerInstances=arns)
    for instance in reply["containerInstances"]:
        for gpu in instance["gpuDevices"]:
            print(gpu["gpuId"], gpu["sharingMode"], gpu["remainingMemoryInMiB"],
                  gpu["totalMemoryInMiB"], gpu["containerCount"])


def containers(endpoint):
    arns = call(endpoint, "ListTasks")["taskArns"]
    if not arns:
        return
    for task in call(endpoint, "DescribeTasks", tasks=arns)["tasks"]:
        family = task["taskDefinitionArn"].split("/")[-1].split(":")[0]
        for container in task["containers"]:
            if container["lastStatus"] == "RUNNING":
                print(family, container["name"], container["runtimeId"],
                      ",".join(container.get("gpuIds", [])))


def main():
    questions = {"gpus": gpus, "containers": containers}
    if len(sys.argv) != 3 or sys.argv[2] not in questions:
        sys.exit(__doc__)
    questions[sys.argv[2]](sys.argv[1])


main()
