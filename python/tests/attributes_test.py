"""Attributes of arrays, folders and stores: texts, numbers, arrays of numbers, lists of texts."""

import json

import numpy as np
import pytest

import oocarray as ooc

values = [
    "K",
    "",
    0.1,
    True,
    -7,
    np.float32(0.1),
    np.uint64(2**64 - 1),
    np.int8(-128),
    np.nan,
    np.array([1, 2, 3], "i2"),
    np.array([[1.5, -np.inf], [np.nan, 5e-324]]),
    np.array([True, False]),
    ["ä", 'b"', ""],
    ["one"],
    [1, 2],
]


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and all(x == y or x != x and y != y for x, y in zip(a.flat, b.flat))


@pytest.mark.parametrize("value", values, ids=repr)
def test_a_value_is_what_was_set(store, budget, value):
    with store.create("f/a", 3) as a:
        for attributes in (a.attributes, store.attributes("f"), store.attributes()):
            attributes["x"] = value
            attributes["other"] = 1.5
            assert same(attributes["x"], value)
            assert set(attributes) == {"x", "other"} and len(attributes) == 2
    with store.open("f/a", "r") as a:  # it is in the store
        assert same(a.attributes["x"], value)
    store.attributes("f")["x"] = "a text now"
    assert store.attributes("f")["x"] == "a text now"
    del store.attributes("f")["x"], store.attributes("f")["other"]
    assert store.attributes("f").texts() == {}


def test_texts_and_types_are_those_of_ooc_import(store, budget):
    with store.create("a", 3) as a:
        a.attributes["scale"] = np.float32(0.1)
        a.attributes["range"] = np.array([[1, 2]], "i2")
        a.attributes["names"] = ["a", "b"]
        a.attributes["units"] = "K"
        texts = a.attributes.texts()
        assert json.loads(texts.pop("hdf5.types")) == {"scale": "f4", "range": "i2[1,2]", "names": "str[2]"}
        assert texts == {"scale": "0.1", "range": "[1,2]", "names": '["a", "b"]', "units": "K"}


@pytest.mark.parametrize("types", ["", "no JSON", "[]", '{"x": 7, "y": "f9", "z": "i4[2]", "w": "str[1]", "gone": "i4"}'])
def test_a_text_that_is_not_what_its_type_says_is_a_text(store, budget, types):
    with store.create("a", 3) as a:
        texts = {"x": "1", "y": "2", "z": "[1,2,3]", "w": "[7]"}
        for key, text in texts.items():
            a.attributes[key] = text
        a._core.set_attribute("hdf5.types", types)
        assert dict(a.attributes) == texts
        a.attributes["v"] = 1
        assert dict(a.attributes) == {**texts, "v": 1}


def test_what_no_attribute_can_be_is_refused(store, budget):
    attributes = store.attributes()
    for value, match in ((None, "None is neither"), ({}, "neither"), (1j, "complex128"), ([], "empty"), ([1, "a", None], "neither")):
        with pytest.raises(TypeError, match=f"'x': .*{match}.*json.dumps"):
            attributes["x"] = value
    with pytest.raises(TypeError, match="named by texts"):
        attributes[7] = "x"
    with pytest.raises(KeyError):
        del attributes["x"]
    assert not attributes
