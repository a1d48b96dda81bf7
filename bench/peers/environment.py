"""Makes the virtual environment that the peers run in. Installs only what is missing."""

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"


def requirement_versions(name):
    """{"onnx": "1.2.3", ...} of a requirements file."""
    lines = (HERE / name).read_text().splitlines()
    return dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))


def has_versions(python, versions):
    """True where every module imports and has the pinned version (a local suffix may follow)."""
    code = "import importlib\n" + "\n".join(
        f"assert importlib.import_module({module!r}).__version__.split('+')[0] == {version!r}"
        for module, version in versions.items()
    )
    return subprocess.run([python, "-c", code], capture_output=True).returncode == 0


def pip_install(python, *arguments):
    command = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-compile", *arguments]
    result = subprocess.run(command, capture_output=True, text=True)
    return "" if result.returncode == 0 else (result.stderr or result.stdout).strip()


def prepare(venv, wants_torch, say):
    """Returns (python, peers that can be used, why the others can't)."""
    python = str(venv / "bin" / "python")
    if not pathlib.Path(python).exists():
        say(f"creating {venv.name}/ for the peers")
        made = subprocess.run([sys.executable, "-m", "venv", str(venv)], capture_output=True, text=True)
        if made.returncode != 0:
            why = "no virtual environment (on Debian: apt-get install python3-venv)"
            return None, [], {"onnxruntime": why, "torch": why}
    usable, missing = [], {}
    if not has_versions(python, requirement_versions("requirements.txt")):
        say("installing ONNX Runtime")
        pip_install(python, "-r", str(HERE / "requirements.txt"))
    if has_versions(python, requirement_versions("requirements.txt")):
        usable.append("onnxruntime")
    else:
        missing["onnxruntime"] = "could not be installed; see bench/peers/requirements.txt"
        return python, [], dict(missing, torch="needs numpy, which could not be installed")
    if not wants_torch:
        missing["torch"] = "left out by --no-torch"
    elif install_torch(python, say):
        usable.append("torch")
    else:
        missing["torch"] = "could not be installed; see bench/peers/requirements_torch.txt"
    return python, usable, missing


def install_torch(python, say):
    versions = requirement_versions("requirements_torch.txt")
    if has_versions(python, versions):
        return True
    say("installing PyTorch")
    requirements = ["-r", str(HERE / "requirements_torch.txt")]
    impatient = ["--retries", "0", "--timeout", "15"]
    pip_install(python, *requirements, "--index-url", TORCH_CPU_INDEX, *impatient)
    if has_versions(python, versions):
        return True
    say("PyTorch's CPU index is out of reach; installing from PyPI, which takes about 3 GB")
    pip_install(python, *requirements)
    return has_versions(python, versions)
