"""Checks the files of deploy/ for what can be known without a cluster: manifests_test.py DEPLOY. The manifests
are read by PyYAML if it is installed, else only their lines are."""
import pathlib
import re
import subprocess
import sys

try:
    import yaml
except ImportError:
    yaml = None

wrong = []


def check(condition, text):
    if not condition:
        wrong.append(text)


def check_lines(path):
    """What YAML demands of each line of our manifests, which have no texts of several lines."""
    indents = [0]
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        indent = len(line) - len(line.lstrip())
        check("\t" not in line and indent % 2 == 0 and indent <= indents[-1] + 4
              and re.match(r"\s*(- )?[A-Za-z]\w*:( |$)", line),
              f"{path}:{number}: a key with spaces before it. Received: {line}")
        indents.append(indent)


def variables(container):
    return {entry["name"]: entry.get("value", entry.get("valueFrom"))
            for entry in container["env"]}


def check_container(path, container, count, named):
    """`named`: the variables that the manifest has to set beside the secret."""
    found = variables(container)
    check(set(found) == named | {"TESSERA_SECRET"}, f"{path}: variables. Received: {sorted(found)}")
    check(found["TESSERA_SECRET"] == {"secretKeyRef": {"name": "tessera-secret", "key": "secret"}},
          f"{path}: the secret is one of Kubernetes")
    check(f"batch={count}" in container["command"], f"{path}: a device for each of {count} pods")
    return found


def check_jobset(path, manifest):
    check((manifest["apiVersion"], manifest["kind"]) == ("jobset.x-k8s.io/v1alpha2", "JobSet"),
          f"{path}: kind")
    spec = manifest["spec"]
    [workers] = spec["replicatedJobs"]
    job = workers["template"]["spec"]
    check(workers["replicas"] == 1, f"{path}: indices are ranks in one Job only")
    check(job["completionMode"] == "Indexed" and job["backoffLimit"] == 0, f"{path}: mode of the Job")
    check(job["parallelism"] == job["completions"], f"{path}: all pods run at once")
    check(spec["coordinator"] == {"replicatedJob": workers["name"], "jobIndex": 0, "podIndex": 0},
          f"{path}: rank 0's pod is the coordinator")
    [container] = job["template"]["spec"]["containers"]
    found = check_container(path, container, job["completions"],
                            {"WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})
    check(found["WORLD_SIZE"] == str(job["completions"]), f"{path}: WORLD_SIZE is the number of pods")
    check(found["MASTER_ADDR"] == {"fieldRef": {
        "fieldPath": "metadata.annotations['jobset.sigs.k8s.io/coordinator']"}},
          f"{path}: MASTER_ADDR is the coordinator's")


def check_trainer(path, manifest):
    check((manifest["apiVersion"], manifest["kind"]) ==
          ("trainer.kubeflow.org/v1alpha1", "TrainJob"), f"{path}: kind")
    check(manifest["spec"]["runtimeRef"] == {"name": "torch-distributed"}, f"{path}: runtime")
    trainer = manifest["spec"]["trainer"]
    check(trainer["numProcPerNode"] == 1, f"{path}: one process for each node")
    check_container(path, trainer, trainer["numNodes"], set())


def main():
    deploy = pathlib.Path(sys.argv[1])
    manifests = {"jobset.yaml": check_jobset, "trainer_v2.yaml": check_trainer}
    folder = deploy / "kubernetes"
    check({path.name for path in folder.iterdir()} == set(manifests), f"{folder}: files with checks")
    for name, check_content in manifests.items():
        check_lines(folder / name)
        if yaml:
            check_content(folder / name, yaml.safe_load((folder / name).read_text()))
    script = deploy / "slurm" / "train.sbatch"
    check(subprocess.run(["bash", "-n", script], check=False).returncode == 0, f"{script}: syntax")
    text = script.read_text()
    check(text.index("\n#SBATCH") < text.index("\nset "), f"{script}: #SBATCH before commands")
    check("TESSERA_SECRET=$(openssl rand -hex 32)" in text, f"{script}: a secret")
    print("with PyYAML" if yaml else "without PyYAML: lines only")
    for line in wrong:
        print(f"FAILED: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
