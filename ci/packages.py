#!/usr/bin/env python3
"""Packs an existing program: `ci/packages.py STAGE OUT TARGET`.

STAGE has the files as below a prefix: bin, share/man, share/doc and completions. OUT gets a tarball, a Debian package, a Python
wheel, a bill of materials (CycloneDX) and SHA256SUMS. All packages hold the same program. Their bytes depend only on STAGE,
Cargo.lock and SOURCE_DATE_EPOCH: entries are sorted, owners are root, times are equal. `ci/packages.py --licences FILE` writes the
licences of all dependencies. `ci/packages.py --recipes OUT` renders ci/recipes for the tarballs in OUT: a Homebrew formula and a
conda recipe. `ci/packages.py --check-recipes` parses all recipes by Ruby, Nix and rattler-build (`pip install py-rattler-build`),
where these are installed.
"""
import base64
import csv
import gzip
import hashlib
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import uuid
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = "vk-litmus"
SUMMARY = "Litmus tests for GPU memory models, and races in shaders"
ABOUT = """Runs litmus tests on Vulkan devices and judges them by an axiomatic
memory model, and finds data races in shaders."""
# The C library's package for the oldest supported release, and packages that only some commands use.
DEPENDS, RECOMMENDS, SUGGESTS = "libc6 (>= {glibc})", "libvulkan1", "mesa-vulkan-drivers, glslang-tools"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
TARGETS = [f"{machine}-unknown-linux-gnu" for machine in ARCHITECTURES]
EDITOR_LICENCES = ROOT / "harness/web/page/codemirror.LICENSE.txt"
LICENCE_FILE = re.compile(r"^(LICEN[CS]E|COPYING|NOTICE|UNLICENSE)", re.IGNORECASE)


def commit_time():
    """Returns the time of every file: that of the commit."""
    return int(os.environ["SOURCE_DATE_EPOCH"])


def linked_packages(target=None):
    """Returns the packages that the program is built from, without those for tests."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    if target:
        command += ["--filter-platform", target]
    described = json.loads(subprocess.check_output(command, cwd=ROOT))
    nodes = {node["id"]: node for node in described["resolve"]["nodes"]}
    packages = {package["id"]: package for package in described["packages"]}
    todo = [package["id"] for package in described["packages"] if package["name"] == NAME]
    found = set(todo)
    while todo:
        for dependency in nodes[todo.pop()]["deps"]:
            normal = any(kind["kind"] in (None, "build") for kind in dependency["dep_kinds"])
            if normal and dependency["pkg"] not in found:
                found.add(dependency["pkg"])
                todo.append(dependency["pkg"])
    return sorted((packages[key] for key in found), key=lambda package: (package["name"], package["version"]))


def collect_licences():
    """Returns the licences of all dependencies, crates and the packages of the playground's editor, each text once."""
    texts, index = {}, []
    for package in linked_packages():
        if package["source"] is None:
            continue
        folder = Path(package["manifest_path"]).parent
        names = []
        for file in sorted(folder.iterdir()):
            if LICENCE_FILE.match(file.name) and file.is_file():
                text = file.read_text(encoding="utf-8", errors="replace").strip()
                names.append(texts.setdefault(text, len(texts) + 1))
        where = ", ".join(f"text {number}" for number in names) or "no text in the package"
        index.append(f"{package['name']} {package['version']}: {package['license'] or 'see text'} ({where})")
    parts = [f"Dependencies of {NAME} with their licences\n\n" + "\n".join(index)]
    parts += [f"{'=' * 30} text {number}\n\n{text}" for text, number in texts.items()]
    parts.append("=" * 30 + " the editor of the playground\n\n" + EDITOR_LICENCES.read_text(encoding="utf-8").strip())
    return "\n\n".join(parts) + "\n"


def make_tarball(folder, prefix, names=None):
    """Returns a tarball of a folder with sorted entries."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        files = sorted(folder.rglob("*")) if names is None else [folder / name for name in sorted(names)]
        for path in [folder, *files]:
            name = prefix + ("" if path == folder else f"/{path.relative_to(folder)}")
            entry = archive.gettarinfo(path, name)
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = "root"
            entry.mtime = commit_time()
            entry.mode = 0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644
            with (path.open("rb") if path.is_file() else io.BytesIO()) as content:
                archive.addfile(entry, content if path.is_file() else None)
    return buffer.getvalue()


def gzip_bytes(data):
    """Returns gzip data without a time or a name."""
    return gzip.compress(data, compresslevel=9, mtime=0)


def needed_glibc(program):
    """Returns the newest version of the C library that a program names."""
    found = re.findall(rb"GLIBC_(\d+)\.(\d+)", program.read_bytes())
    return "{}.{}".format(*max((int(major), int(minor)) for major, minor in found))


def make_debian_package(stage, version, target):
    """Returns a Debian package: an `ar` archive of two tarballs."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "data"
        size = 0
        sums = []
        for path in sorted(path for path in stage.rglob("*") if path.is_file()):
            name = Path("usr") / path.relative_to(stage)
            # Debian reads manual pages compressed.
            data = path.read_bytes()
            if "share/man" in str(name):
                name, data = name.with_name(name.name + ".gz"), gzip_bytes(data)
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
            (root / name).chmod(path.stat().st_mode)
            size += len(data)
            sums.append(f"{hashlib.md5(data).hexdigest()}  {name}\n")
        copyright_file = root / "usr/share/doc" / NAME / "copyright"
        copyright_file.write_text((ROOT / "LICENSE-MIT").read_text() + "\nAlternatively the Apache License, version 2.0.\n")
        control = Path(scratch) / "control"
        control.mkdir()
        (control / "md5sums").write_text("".join(sums))
        about = "\n ".join(ABOUT.splitlines())
        depends = DEPENDS.format(glibc=needed_glibc(stage / "bin" / NAME))
        (control / "control").write_text(
            f"Package: {NAME}\nVersion: {version}\nArchitecture: {ARCHITECTURES[target.split('-')[0]]}\n"
            f"Maintainer: {NAME} <{NAME}@localhost>\nInstalled-Size: {size // 1024}\nDepends: {depends}, libgcc-s1\n"
            f"Recommends: {RECOMMENDS}\nSuggests: {SUGGESTS}\nSection: devel\nPriority: optional\n"
            f"Description: {SUMMARY}\n {about}\n"
        )
        members = [
            ("debian-binary", b"2.0\n"),
            ("control.tar.gz", gzip_bytes(make_tarball(control, "."))),
            ("data.tar.gz", gzip_bytes(make_tarball(root, "."))),
        ]
    archive = b"!<arch>\n"
    for name, data in members:
        archive += f"{name:<16}{commit_time():<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode() + data
        archive += b"\n" if len(data) % 2 else b""
    return archive


def make_wheel(stage, version, target):
    """Returns the name and bytes of a Python wheel with the program as a script and the package `vk_litmus`."""
    glibc = needed_glibc(stage / "bin" / NAME).replace(".", "_")
    tag = f"py3-none-manylinux_{glibc}_{target.split('-')[0]}"
    module_name = NAME.replace("-", "_")
    info = f"{module_name}-{version}.dist-info"
    files = {
        f"{module_name}-{version}.data/scripts/{NAME}": (stage / "bin" / NAME).read_bytes(),
        f"{info}/METADATA": (
            f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version}\nSummary: {SUMMARY}\nLicense: MIT OR Apache-2.0\n"
            f"Requires-Python: >=3.8\n\n{ABOUT}\n"
        ).encode(),
        f"{info}/entry_points.txt": f"[pytest11]\n{module_name} = {module_name}.pytest_plugin\n".encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: {NAME}\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
    }
    for path in sorted((ROOT / "ci/python" / module_name).iterdir()):
        if path.is_file():
            files[f"{module_name}/{path.name}"] = path.read_bytes()
    for licence in ("LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY.txt"):
        files[f"{info}/licenses/{licence}"] = (stage / "share/doc" / NAME / licence).read_bytes()
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.writerow([name, f"sha256={digest}", len(data)])
    rows.writerow([f"{info}/RECORD", "", ""])
    files[f"{info}/RECORD"] = record.getvalue().encode()
    buffer = io.BytesIO()
    # ZIP archives cannot store times before 1980.
    zip_time = time.gmtime(max(commit_time(), 315532800))[:6]
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, zip_time)
            entry.create_system = 3
            entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return f"{module_name}-{version}-{tag}.whl", buffer.getvalue()


def bill_of_materials(version, target):
    """Returns the bill of materials: CycloneDX 1.5 with a component for each crate."""
    def component(package):
        purl = f"pkg:cargo/{package['name']}@{package['version']}"
        described = {
            "type": "library", "bom-ref": purl, "name": package["name"], "version": package["version"], "purl": purl,
            "scope": "required",
        }
        if package["license"]:
            described["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        return described

    lock = (ROOT / "Cargo.lock").read_text()
    sums = dict(re.findall(r'name = "([^"]+)"\nversion = "[^"]+"\nsource = "[^"]+"\nchecksum = "([0-9a-f]+)"', lock))
    packages = [package for package in linked_packages(target) if package["source"]]
    components = [component(package) for package in packages]
    for described in components:
        if sum(other["name"] == described["name"] for other in components) == 1 and described["name"] in sums:
            described["hashes"] = [{"alg": "SHA-256", "content": sums[described["name"]]}]
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(commit_time()))
    program = {"type": "application", "bom-ref": NAME, "name": NAME, "version": version}
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, lock + target + version)}",
        "metadata": {"timestamp": stamp, "component": program},
        "components": components,
    }


def workspace_field(name):
    """Returns a field of `workspace.package`, such as the version."""
    return re.search(rf'^{name} = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE).group(1)


def render_recipes(out):
    """Writes each recipe with the version, the repository and the sums of the tarballs."""
    version = workspace_field("version")
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in out.glob("*.tar.gz")}
    missing = [target for target in TARGETS if f"{NAME}-{version}-{target}.tar.gz" not in sums]
    if missing:
        print(f"skipped: the recipes need a tarball of {' and of '.join(missing)}")
        return

    def value(match):
        word = match.group(1)
        if word.startswith("SHA256:"):
            return sums[f"{NAME}-{version}-{word[7:]}.tar.gz"]
        return {"VERSION": version, "REPOSITORY": workspace_field("repository"), "SUMMARY": SUMMARY}[word]

    for name in ("vk-litmus.rb", "recipe.yaml"):
        text = (ROOT / "ci/recipes" / name).read_text()
        (out / name).write_text(re.sub(r"@([A-Z0-9]+(?::[a-z0-9_-]+)?)@", value, text))


RATTLER = "import sys; from rattler_build import Stage0Recipe; Stage0Recipe.from_file(sys.argv[1])"


def check_recipes(out):
    """Parses the rendered recipes by the programs that read them, where these are installed; returns the number of errors."""
    commands = [
        ("ruby", ["ruby", "-wc", out / "vk-litmus.rb"]),
        ("nix-instantiate", ["nix-instantiate", "--parse", ROOT / "ci/recipes/flake.nix"]),
        ("py-rattler-build", [sys.executable, "-c", RATTLER, out / "recipe.yaml"]),
    ]
    errors = 0
    for program, command in commands:
        installed = importlib.util.find_spec("rattler_build") if program == "py-rattler-build" else shutil.which(program)
        if not installed:
            print(f"skipped: {program} is not installed, {Path(command[-1]).name} is not checked")
            continue
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        errors += done.returncode != 0
        print(f"{Path(command[-1]).name}: {'ok' if done.returncode == 0 else done.stderr}")
    return errors


def check_rendered_recipes():
    """Renders the recipes for tarballs without contents, and checks them."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        for target in TARGETS:
            (out / f"{NAME}-{workspace_field('version')}-{target}.tar.gz").touch()
        render_recipes(out)
        return check_recipes(out)


def main():
    if sys.argv[1] == "--recipes":
        render_recipes(Path(sys.argv[2]))
        return
    if sys.argv[1] == "--check-recipes":
        sys.exit(check_rendered_recipes() > 0)
    if sys.argv[1] == "--licences":
        Path(sys.argv[2]).write_text(collect_licences(), encoding="utf-8")
        return
    stage, out, target = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    version = workspace_field("version")
    name = f"{NAME}-{version}-{target}"
    wheel_name, wheel_bytes = make_wheel(stage, version, target)
    artifacts = {
        f"{name}.tar.gz": gzip_bytes(make_tarball(stage, name)),
        f"{NAME}_{version}_{ARCHITECTURES[target.split('-')[0]]}.deb": make_debian_package(stage, version, target),
        wheel_name: wheel_bytes,
        f"{name}.cdx.json": (json.dumps(bill_of_materials(version, target), indent=1) + "\n").encode(),
    }
    artifacts[f"{name}.tar.gz.sha256"] = f"{hashlib.sha256(artifacts[f'{name}.tar.gz']).hexdigest()}  {name}.tar.gz\n".encode()
    out.mkdir(parents=True, exist_ok=True)
    for file, data in artifacts.items():
        (out / file).write_bytes(data)
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in out.iterdir() if path.name != "SHA256SUMS"}
    (out / "SHA256SUMS").write_text("".join(f"{sums[file]}  {file}\n" for file in sorted(sums)))


if __name__ == "__main__":
    main()
