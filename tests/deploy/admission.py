"""What an API server makes of a pod under a MutatingAdmissionPolicy, as far as it goes without one: expressions by a CEL evaluator,
apply configurations merged by the published schema of a Kubernetes version, JSON patches by jsonpatch.

Refused as the server refuses them: fields that the schema does not know, whatever it calls atomic in an apply configuration, and an
object constructed under another name than its place has. Not done here: CEL's static checks, defaults, and what is admitted later.
"""
import functools
import json
import pathlib

import celpy
import celpy.celtypes
import jsonpatch
import kubernetes_validate

FUNCTIONS = {"indexOf": lambda many, one: celpy.celtypes.IntType(many.index(one) if one in many else -1)}
CONSTRUCTORS = ("Object", "JSONPatch")


class Refused(Exception):
    pass


class Made(celpy.celtypes.MapType):
    """An object that an expression has constructed; it knows by which name."""

    def __init__(self, name, fields):
        super().__init__(fields)
        self.made_as = name


class Constructor(celpy.celtypes.MapType):
    """Object.spec.containers and the like: a name that makes objects."""

    def __init__(self, name):
        super().__init__()
        self.name = name

    def __getitem__(self, key):
        return Constructor(f"{self.name}.{key}")

    def get(self, key, default=None):
        return self[key]

    def __call__(self, fields=None):
        return Made(self.name, fields or {})


def evaluated(expression, variables):
    environment = celpy.Environment()
    program = environment.program(environment.compile(expression), functions=FUNCTIONS)
    names = {name: celpy.json_to_cel(value) for name, value in variables.items()}
    return program.evaluate({**names, **{name: Constructor(name) for name in CONSTRUCTORS}})


def plain(value, name):
    """What an expression has made, as JSON has it."""
    if isinstance(value, dict):
        if isinstance(value, Made) and value.made_as != name:
            raise Refused(f"type mismatch: {value.made_as}, expected {name}")
        return {str(key): plain(field, f"{name}.{key}") for key, field in value.items()}
    if isinstance(value, list):
        return [plain(one, name) for one in value]
    return json.loads(json.dumps(celpy.CELJSONEncoder.to_python(value)))


class Schema:
    """The types of a Kubernetes version, out of its published JSON schemas."""

    def __init__(self, version):
        folder = pathlib.Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema" / f"v{version}-local"
        self.types = json.loads((folder / "_definitions.json").read_text())["$defs"]

    def resolved(self, schema):
        """A type, with what the place that names it adds to it."""
        if "$ref" not in schema:
            return schema
        return {**self.types[schema["$ref"].rpartition("/")[2]], **{key: value for key, value in schema.items() if key != "$ref"}}

    def merged(self, schema, there, patch, path=""):
        """A patch laid over what is there."""
        schema = self.resolved(schema)
        if isinstance(patch, dict):
            if schema.get("x-kubernetes-map-type") == "atomic":
                raise Refused(f"may not mutate atomic {path}")
            fields, others = schema.get("properties", {}), schema.get("additionalProperties")
            if unknown := [key for key in patch if key not in fields and not others]:
                raise Refused(f"{path}.{unknown[0]}: field not declared in schema")
            there = there if isinstance(there, dict) else {}
            return {**there, **{key: self.merged(fields.get(key, others), there.get(key), value, f"{path}.{key}") for key, value in patch.items()}}
        if isinstance(patch, list):
            if schema.get("x-kubernetes-list-type") != "map":
                raise Refused(f"may not mutate atomic {path}")
            keys = schema["x-kubernetes-list-map-keys"]
            result = list(there or [])
            for one in patch:
                place = next((index for index, other in enumerate(result) if all(other.get(key) == one.get(key) for key in keys)), len(result))
                result[place:place + 1] = [self.merged(schema["items"], dict(enumerate(result)).get(place), one, f"{path}[{one.get(keys[0])}]")]
            return result
        return patch


@functools.lru_cache
def schema_of(version):
    return Schema(version)


def admitted(policy, pod, version):
    """The pod as it is stored; None where the policy does not want it."""
    spec = policy["spec"]
    wanted = spec["matchConstraints"]["objectSelector"]["matchLabels"]
    if wanted.items() - pod["metadata"].get("labels", {}).items():
        return None
    if not all(evaluated(condition["expression"], {"object": pod}) for condition in spec["matchConditions"]):
        return None
    variables = {one["name"]: plain(evaluated(one["expression"], {"object": pod}), "") for one in spec["variables"]}
    schema = schema_of(version)
    for mutation in spec["mutations"]:
        given = {"object": pod, "variables": variables}
        if mutation["patchType"] == "ApplyConfiguration":
            patch = plain(evaluated(mutation["applyConfiguration"]["expression"], given), "Object")
            pod = schema.merged({"$ref": "io.k8s.api.core.v1.Pod"}, pod, patch)
        else:
            made = evaluated(mutation["jsonPatch"]["expression"], given)
            operations = [{str(key): plain(value, getattr(value, "made_as", "")) for key, value in one.items()} for one in made]
            pod = jsonpatch.apply_patch(pod, operations)
    return pod
