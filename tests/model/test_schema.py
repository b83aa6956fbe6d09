import json
from pathlib import Path

import jsonschema
import pytest

from tidings.model import reading, yaml_text
from tidings.model.schema import system_schema

VALIDATOR = jsonschema.Draft202012Validator(system_schema())
FULL = (Path(__file__).parent / "full_system.yaml").read_text()
GOOD = (Path(__file__).parent / "small_system.yaml").read_text()


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(system_schema())
    json.dumps(system_schema(), allow_nan=False)


@pytest.mark.parametrize("text", [GOOD, FULL])
def test_what_the_reader_accepts_the_schema_accepts_written_either_way(text):
    VALIDATOR.validate(yaml_text.parse(text).value)
    VALIDATOR.validate(reading.system_document(reading.loads(text)))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("scheme: buffering", "scheme: hope"),
        ("reliability: 0.99", "reliability: 2"),
        ("stays: ", "stay: "),
        ("{exponential: 3ms}", "{exponental: 3ms}"),
        ("tidings: 1", "tidings: 2"),
        ("[hub, east]", "[hub]"),
    ],
)
def test_what_is_plainly_wrong_the_schema_refuses_too(right, wrong):
    assert right in GOOD
    document = yaml_text.parse(GOOD.replace(right, wrong, 1)).value
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(document)


def test_every_property_has_a_description():
    seen, bare = 0, []

    def walk(part, path):
        nonlocal seen
        for name, form in part.get("properties", {}).items() if isinstance(part, dict) else ():
            seen += 1
            if not form.get("description", "").strip():
                bare.append((*path, name))
        inner = part.items() if isinstance(part, dict) else enumerate(part)
        for key, each in inner:
            if isinstance(each, dict | list):
                walk(each, (*path, key))

    walk(system_schema(), ())
    assert seen > 100
    assert bare == []
