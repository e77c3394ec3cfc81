"""Every operation that cotenant offers, by boto3: 09_api.test.mjs starts what it talks to.

Environment: COTENANT_ENDPOINT, and AWS_DATA_PATH with the shapes of GPU sharing (scripts/aws-model).
"""
import os
import time

import boto3

IMAGE = "cotenant/gpu-worker:latest"
ecs = boto3.client("ecs", endpoint_url=os.environ["COTENANT_ENDPOINT"])


def refused(name, call, **arguments):
    try:
        call(**arguments)
    except ecs.exceptions.ClientError as error:
        assert error.response["Error"]["Code"] == name, error
        return error.response["Error"]["Message"]
    raise AssertionError(f"{name} was expected")


def wait_for(arn, status):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        task = ecs.describe_tasks(tasks=[arn])["tasks"][0]
        if task["lastStatus"] == status:
            return task
        assert task["lastStatus"] != "STOPPED", task
        time.sleep(0.1)  # between two looks
    raise AssertionError(f"{arn} is not {status}: {task}")


def container(name, memory_mib):
    return {
        "name": name, "image": IMAGE, "memory": 64, "stopTimeout": 2,
        "command": ["--memory-mib", "64"],
        "resourceRequirements": [{"type": "GPU", "sharingStrategy": {"nvidiaMps": {"memory": memory_mib}}}],
    }


def definitions():
    for memory_mib in (1000, 1500, 2000):
        made = ecs.register_task_definition(
            family="boto", networkMode="none", containerDefinitions=[container("web", memory_mib)],
            tags=[{"key": "team", "value": "a"}])
    assert made["taskDefinition"]["revision"] == 3
    pages = ecs.get_paginator("list_task_definitions").paginate(
        familyPrefix="boto", sort="DESC", PaginationConfig={"PageSize": 2})
    arns = [arn for page in pages for arn in page["taskDefinitionArns"]]
    assert [arn.rsplit(":", 1)[1] for arn in arns] == ["3", "2", "1"], arns
    assert ecs.deregister_task_definition(taskDefinition="boto:1")["taskDefinition"]["status"] == "INACTIVE"
    deleted = ecs.delete_task_definitions(taskDefinitions=["boto:1", "boto:2"])
    assert [one["revision"] for one in deleted["taskDefinitions"]] == [1]
    assert len(deleted["failures"]) == 1
    families = ecs.list_task_definition_families(familyPrefix="bo", status="ACTIVE")["families"]
    assert families == ["boto"], families
    shown = ecs.describe_task_definition(taskDefinition="boto", include=["TAGS"])
    assert shown["taskDefinition"]["revision"] == 3 and shown["tags"] == [{"key": "team", "value": "a"}]
    refused("ClientException", ecs.run_task, taskDefinition="boto:1")


def tasks():
    run = ecs.run_task(taskDefinition="boto", count=2, startedBy="boto", propagateTags="TASK_DEFINITION",
                       overrides={"containerOverrides": [{"name": "web", "memory": 128}]})
    assert len(run["tasks"]) == 2 and run["failures"] == [], run
    arns = sorted(task["taskArn"] for task in run["tasks"])
    for arn in arns:
        task = wait_for(arn, "RUNNING")
        assert task["containers"][0]["memory"] == "128"
        assert task["containers"][0]["gpuSharingStrategy"] == {"nvidiaMps": {"memory": 2000}}
    pages = ecs.get_paginator("list_tasks").paginate(startedBy="boto", PaginationConfig={"PageSize": 1})
    assert sorted(arn for page in pages for arn in page["taskArns"]) == arns
    assert ecs.list_tasks(family="boto", launchType="EC2", desiredStatus="STOPPED")["taskArns"] == []
    ecs.tag_resource(resourceArn=arns[0], tags=[{"key": "x", "value": "y"}])
    ecs.untag_resource(resourceArn=arns[0], tagKeys=["team"])
    assert ecs.list_tags_for_resource(resourceArn=arns[0])["tags"] == [{"key": "x", "value": "y"}]
    for arn in arns:
        assert ecs.stop_task(task=arn, reason="enough")["task"]["stoppedReason"] == "enough"
    ecs.get_waiter("tasks_stopped").wait(tasks=arns, WaiterConfig={"Delay": 1, "MaxAttempts": 60})


def tokens():
    first = ecs.run_task(taskDefinition="boto", clientToken="tok")
    again = ecs.run_task(taskDefinition="boto", clientToken="tok")
    assert first["tasks"][0]["taskArn"] == again["tasks"][0]["taskArn"]
    refused("ConflictException", ecs.run_task, taskDefinition="boto", count=2, clientToken="tok")
    ecs.stop_task(task=first["tasks"][0]["taskArn"])


def instances():
    pages = ecs.get_paginator("list_container_instances").paginate(status="ACTIVE")
    (arn,) = [arn for page in pages for arn in page["containerInstanceArns"]]
    described = ecs.describe_container_instances(containerInstances=[arn, "nope"], include=["TAGS"])
    devices = described["containerInstances"][0]["gpuDevices"]
    assert len(devices) == 2 and described["failures"][0]["reason"] == "MISSING"
    started = ecs.start_task(taskDefinition="boto", containerInstances=[arn], group="g")
    task = wait_for(started["tasks"][0]["taskArn"], "RUNNING")
    assert ecs.list_tasks(containerInstance=arn)["taskArns"] == [task["taskArn"]]
    for status in ("DRAINING", "ACTIVE"):
        changed = ecs.update_container_instances_state(containerInstances=[arn], status=status)
        assert changed["containerInstances"][0]["status"] == status
    message = refused("InvalidParameterException", ecs.deregister_container_instance, containerInstance=arn)
    assert "Found running tasks" in message, message
    ecs.stop_task(task=task["taskArn"])
    ecs.get_waiter("tasks_stopped").wait(tasks=[task["taskArn"]], WaiterConfig={"Delay": 1, "MaxAttempts": 60})


def clusters():
    made = ecs.create_cluster(clusterName="boto", tags=[{"key": "k", "value": "v"}])["cluster"]
    shown = ecs.describe_clusters(clusters=["boto"], include=["TAGS", "STATISTICS"])["clusters"][0]
    assert shown["tags"] == [{"key": "k", "value": "v"}] and shown["statistics"]
    pages = ecs.get_paginator("list_clusters").paginate(PaginationConfig={"PageSize": 1})
    assert made["clusterArn"] in [arn for page in pages for arn in page["clusterArns"]]
    assert ecs.delete_cluster(cluster="boto")["cluster"]["status"] == "INACTIVE"
    refused("ClusterNotFoundException", ecs.list_tasks, cluster="boto")
    refused("ClusterContainsContainerInstancesException", ecs.delete_cluster, cluster="default")


def settings():
    ecs.put_account_setting_default(name="awsvpcTrunking", value="enabled")
    ecs.put_account_setting(name="containerInsights", value="enabled")
    pages = ecs.get_paginator("list_account_settings").paginate(effectiveSettings=True)
    values = {one["name"]: one["value"] for page in pages for one in page["settings"]}
    assert values["awsvpcTrunking"] == "enabled" and values["taskLongArnFormat"] == "enabled", values
    for name in ("awsvpcTrunking", "containerInsights"):
        ecs.delete_account_setting(name=name)


for part in (clusters, definitions, tasks, tokens, instances, settings):
    part()
print("the story has ended well")
