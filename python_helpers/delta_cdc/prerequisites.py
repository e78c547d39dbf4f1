# ruff: noqa: UP010, UP030, UP032, I001
"""Is this machine ready? One sentence for each thing that is not, with the remedy, before anything starts.

`make setup` runs this file with whatever Python it finds, so it needs nothing but the standard library and is
valid from Python 2.7 on. It prints to stderr and exits with the number of problems.

    python prerequisites.py [--only python|venv|java|packages|jars] ...
"""

from __future__ import print_function

import os
import re
import subprocess
import sys

try:
    from configparser import ConfigParser, Error as ConfigParserError
    from urllib.error import HTTPError
    from urllib.parse import urlsplit, urlunsplit
    from urllib.request import ProxyHandler, build_opener
except ImportError:  # Python 2 only gets as far as being told that it is too old
    pass

OLDEST_PYTHON = (3, 10)
NEWEST_PYTHON = (3, 13)
JAVA_VERSIONS = (17, 21)
PYPI = "https://pypi.org/simple"
MAVEN_CENTRAL = "https://repo1.maven.org/maven2"
TIMEOUT_SECONDS = 20


def check_python(version=None):
    # type: (tuple[int, ...] | None) -> str | None
    """The Python that will make the virtual environment."""
    found = tuple(version or sys.version_info[:2])[:2]
    if OLDEST_PYTHON <= found <= NEWEST_PYTHON:
        return None
    return (
        "Python {0} is too {1}: versions {2} to {3} are supported. Install one of them "
        "(Debian or Ubuntu: sudo apt install python3 python3-venv; macOS: brew install python@3.12; "
        "anywhere: pyenv install 3.12) and name it: make setup PYTHON=python3.12".format(
            dotted(found),
            "old" if found < OLDEST_PYTHON else "new",
            dotted(OLDEST_PYTHON),
            dotted(NEWEST_PYTHON),
        )
    )


def check_venv():
    # type: () -> str | None
    """Debian ships Python without the modules that make a virtual environment."""
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        return (
            "This Python ({0}) cannot make a virtual environment, because its module ensurepip is missing. "
            "Install it: sudo apt install python{1}-venv".format(sys.executable, dotted(sys.version_info[:2]))
        )
    return None


def check_java(environment=None):
    # type: (dict[str, str] | None) -> str | None
    """The Java that Spark will start: that of JAVA_HOME, else the one on the path."""
    environment = dict(os.environ if environment is None else environment)
    wanted = " or ".join(str(version) for version in JAVA_VERSIONS)
    remedy = java_remedy()
    home = environment.get("JAVA_HOME")
    command = os.path.join(home, "bin", "java") if home else "java"
    where = "JAVA_HOME ({0})".format(home) if home else "the path"
    code, output = run([command, "-version"], environment)
    if code is None:
        if home:
            return "JAVA_HOME is {0}, and there is no bin/java in it. Java {1} is needed. {2}".format(home, wanted, remedy)
        return "Java {0} is needed, and there is no Java on the path. {1}".format(wanted, remedy)
    version = java_version(output)
    if version is None:
        return "Java {0} is needed; the java of {1} does not say its version ({2}). {3}".format(
            wanted, where, first_line(output) or "exit code {0}".format(code), remedy
        )
    if version not in JAVA_VERSIONS:
        return "Java {0} is needed, and the java of {1} is version {2}. {3}".format(wanted, where, version, remedy)
    code, output = run([command, "--add-modules=jdk.incubator.vector", "-version"], environment)
    if code != 0:
        return (
            "The Java {0} of {1} lacks the module jdk.incubator.vector, without which Spark does not start: "
            "it is a cut-down build. {2}".format(version, where, remedy)
        )
    return None


def java_version(output):
    # type: (str) -> int | None
    """The major version in what `java -version` prints: 8 for 1.8.0_392, 17 for 17.0.15."""
    found = re.search(r'version "(\d+)(?:\.(\d+))?', output)
    if not found:
        return None
    major = int(found.group(1))
    return int(found.group(2)) if major == 1 and found.group(2) else major


def java_remedy(folders=("/usr/lib/jvm", "/Library/Java/JavaVirtualMachines")):
    # type: (tuple[str, ...]) -> str
    """How to get a Java that fits: one that lies about unused, else how to install it."""
    for version in JAVA_VERSIONS:
        for folder in folders:
            for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
                for home in (os.path.join(folder, name), os.path.join(folder, name, "Contents", "Home")):
                    command = os.path.join(home, "bin", "java")
                    fits = re.search(r"(?<!\d){0}(?!\d)".format(version), name) and os.access(command, os.X_OK)
                    # it is asked, for 17 is also in the name of a Java 11.0.17
                    if fits and java_version(run([command, "-version"], dict(os.environ))[1]) == version:
                        return "There is one in {0}: export JAVA_HOME={0}".format(home)
    return (
        "Install it (Debian or Ubuntu: sudo apt install openjdk-17-jre-headless; macOS: brew install "
        "openjdk@17; anywhere: https://adoptium.net) and set JAVA_HOME to its folder if it is not found."
    )


def check_packages():
    # type: () -> str | None
    """The package index that pip will ask."""
    settings = pip_settings()
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        return None
    url = settings.get("index-url") or PYPI
    if not url.startswith(("http://", "https://")):
        return None  # a folder is an index too
    why = unreachable(url, settings.get("proxy"))
    if why is None:
        return None
    return (
        "The package index {0} cannot be reached ({1}). Connect to the network, set HTTPS_PROXY, or name "
        "a mirror: export PIP_INDEX_URL=https://.../simple".format(without_password(url), why)
    )


def check_jars():
    # type: () -> str | None
    """Maven Central, or the mirror that Ivy is told of, unless Delta's jars are there already."""
    home = os.path.expanduser("~")
    cache = os.environ.get("SPARKDELTA_JARS") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache"), "dbt-sparkdelta"
    )
    if os.path.isdir(cache) and set(os.listdir(cache)) - {"lock"}:
        return None
    url = os.environ.get("DEFAULT_ARTIFACT_REPOSITORY") or MAVEN_CENTRAL  # Spark's own variable
    why = unreachable(url, None)
    if why is None:
        return None
    return (
        "The Maven repository {0} cannot be reached ({1}), and Delta's jars are not in {2}. Connect to the network, set "
        "HTTPS_PROXY, name a mirror (export DEFAULT_ARTIFACT_REPOSITORY=https://...), or copy that folder from a machine "
        "where `make setup` ran.".format(without_password(url), why, cache)
    )


def unreachable(url, proxy):
    # type: (str, str | None) -> str | None
    """Why nobody answers at the address; None if somebody does, whatever the answer."""
    handlers = [ProxyHandler({"http": proxy, "https": proxy})] if proxy else []
    try:
        build_opener(*handlers).open(without_password(url), timeout=TIMEOUT_SECONDS).close()
    except HTTPError as answer:
        # a registry need not have a page there, or wants a password; a gateway that found nobody says 502
        return "the answer was {0}".format(answer.code) if answer.code in (502, 503, 504) else None
    except Exception as error:
        reason = getattr(error, "reason", error)
        if "CERTIFICATE_VERIFY_FAILED" in str(reason):
            return None  # somebody answered; pip has certificates of its own
        return first_line(str(reason)) or type(error).__name__
    return None


def pip_settings():
    # type: () -> dict[str, str]
    """What pip is told by its configuration files and variables: index-url, no-index, proxy."""
    home = os.path.expanduser("~")
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    files = [
        "/etc/xdg/pip/pip.conf",
        "/etc/pip.conf",
        "/Library/Application Support/pip/pip.conf",
        os.path.join(home, ".pip", "pip.conf"),
        os.path.join(home, "Library", "Application Support", "pip", "pip.conf"),
        os.path.join(config, "pip", "pip.conf"),
        os.environ.get("PIP_CONFIG_FILE") or "",
    ]
    settings = {}  # type: dict[str, str]
    for path in files:
        parser = ConfigParser(interpolation=None)
        try:
            parser.read(path)
        except (ConfigParserError, UnicodeDecodeError):
            continue  # pip itself will say so
        for section in ("global", "install"):
            if parser.has_section(section):
                settings.update((name.replace("_", "-"), value) for name, value in parser.items(section))
    for name in ("index-url", "no-index", "proxy"):
        given = os.environ.get("PIP_" + name.upper().replace("-", "_"))
        if given:
            settings[name] = given
    return settings


def without_password(url):
    # type: (str) -> str
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def run(command, environment):
    # type: (list[str], dict[str, str]) -> tuple[int | None, str]
    """Exit code and all output; None where there is no such command."""
    try:
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.PIPE
        )
    except OSError:
        return None, ""
    output, _ = process.communicate()
    return process.returncode, output.decode("utf-8", "replace")


def first_line(text):
    # type: (str) -> str
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else ""


def dotted(version):
    # type: (tuple[int, ...]) -> str
    return ".".join(str(part) for part in version)


CHECKS = (
    ("python", check_python),
    ("venv", check_venv),
    ("java", check_java),
    ("packages", check_packages),
    ("jars", check_jars),
)


def main(arguments=None):
    # type: (list[str] | None) -> int
    """Run the checks (all, or those after --only) and print what is wrong. Returns the number of problems."""
    given = sys.argv[1:] if arguments is None else arguments
    only = [argument for argument in given if argument != "--only"]
    problems = []
    for name, check in CHECKS:
        if only and name not in only:
            continue
        problem = check()
        if problem:
            problems.append(problem)
            if name == "python":
                break  # the rest would be asked of the wrong Python
    for problem in problems:
        print(problem, file=sys.stderr)
    return len(problems)


if __name__ == "__main__":
    sys.exit(main())
