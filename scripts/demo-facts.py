#!/usr/bin/env python3
"""What the demo checks, asked of the ECS API itself.

usage: demo-facts.py ENDPOINT gpus       one line a GPU: id, mode, MiB left, MiB in all, containers
       demo-facts.py ENDPOINT containers one line a running container: family, name, runtime id, GPU
"""
import json
import sys
import urllib.request


def call(endpoint, operation, **members):
    request = urllib.request.Request(
        endpoint + "/",
        data=json.dumps(members).encode(),
        headers={
            "Content-Type": "application/x-amz-json-1.1",
            "X-Amz-Target": "AmazonEC2ContainerServiceV20141113." + operation,
        },
    )
    with urllib.request.urlopen(request, timeout=10) as reply:
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
