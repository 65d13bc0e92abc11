"""NOTICES, the licences of what is inside, and the SBOM (SPDX 2.3, https://spdx.github.io/spdx-spec/v2.3/)."""
import hashlib
import json
import time

RULE = "-" * 100 + "\n"


def notices(parts, own_licence):
    """`parts`: (component, version, text of its licence)."""
    text = "gpupool is under the Apache License 2.0, whose text ends this file. Its binaries hold, as headers or linked in:\n\n"
    for component, version, _ in parts:
        text += f"    {component.name} {version}, {component.licence}, {component.home} (in the {component.inside})\n"
    for component, _, licence in parts:
        text += f"\n{RULE}{component.name}\n{RULE}\n{licence.rstrip()}\n"
    return text + f"\n{RULE}gpupool\n{RULE}\n{own_licence}"


def identifier(name):
    return "SPDXRef-" + "".join(letter if letter.isalnum() else "-" for letter in name).strip("-")


def package(name, version, licence, home, **more):
    return {"SPDXID": identifier(name), "name": name, "versionInfo": version, "licenseConcluded": licence, "licenseDeclared": licence,
            "downloadLocation": "NOASSERTION", "copyrightText": "NOASSERTION", "filesAnalyzed": False, **({"homepage": home} if home else {}),
            **more}


def sbom(version, arch, binaries, parts, epoch):
    """The binaries' own hashes, and what is inside them."""
    files = [{"SPDXID": identifier(entry.path), "fileName": "./" + entry.path, "fileTypes": ["BINARY"],
              "checksums": [{"algorithm": kind.upper(), "checksumValue": hashlib.new(kind, entry.content).hexdigest()}
                            for kind in ("sha1", "sha256")],
              "licenseConcluded": "Apache-2.0", "licenseInfoInFiles": ["NOASSERTION"], "copyrightText": "NOASSERTION"}
             for entry in binaries]
    hashes = sorted(file["checksums"][0]["checksumValue"] for file in files)
    own = package("gpupool", version, "Apache-2.0", "", primaryPackagePurpose="APPLICATION", filesAnalyzed=True,
                  licenseInfoFromFiles=["NOASSERTION"],
                  packageVerificationCode={"packageVerificationCodeValue": hashlib.sha1("".join(hashes).encode()).hexdigest()})
    inside = [package(component.name, number, component.licence, component.home) for component, number, _ in parts]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", own["SPDXID"])]
    relations += [(own["SPDXID"], "CONTAINS", file["SPDXID"]) for file in files]
    relations += [(own["SPDXID"], "DEPENDS_ON", one["SPDXID"]) for one in inside]
    content = hashlib.sha256("".join(file["checksums"][1]["checksumValue"] for file in files).encode()).hexdigest()
    document = {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
                "name": f"gpupool-{version}-linux-{arch}", "documentNamespace": f"urn:gpupool:{version}:{arch}:{content}",
                "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch)), "creators": ["Tool: gpupool-scripts-package"]},
                "packages": [own, *inside], "files": files,
                "relationships": [{"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
                                  for one, kind, other in relations]}
    return json.dumps(document, indent=1) + "\n"
