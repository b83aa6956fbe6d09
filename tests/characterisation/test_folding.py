from __future__ import annotations

import json

from tidings.characterisation.count.publications import folded_contents, folding_statistics
from tidings.characterisation.fit.contents import asked_attributes, folding_note
from tidings.model.filters import as_filter


def test_contents_keep_what_is_asked_for_as_it_is(frame):
    wants = [as_filter({"topic": "a", "price": {"below": 2}}), as_filter([{"topic": "b"}, {}])]
    assert asked_attributes(wants) == ("price", "topic")
    rows = [
        ('{"id":"x1","topic":"a","price":1.50}',),
        ('{"price":1.50,"topic":"a","id":"x2"}',),
        ('{"id":7}',),
        ("nonsense",),
        ("[1]",),
    ]
    found = folded_contents(frame(rows, "content string"), asked_attributes(wants)).collect()
    texts = [row.content for row in found]
    assert texts[0] == texts[1]
    assert json.loads(texts[0]) == {"topic": "a", "price": 1.5}
    assert texts[2:] == ["{}", "nonsense", "[1]"]


def test_what_was_folded_is_told_with_its_mass(frame):
    contents = ['{"id":1,"topic":"a"}', '{"id":2,"topic":"a"}', '{"topic":"a"}', "nonsense"]
    rows = frame([(text,) for text in contents], "content string")
    counted = folding_statistics(rows, ["topic"]).toPandas()
    assert counted.iloc[0].to_dict() == {"rows": 4, "folded": 2, "contents": 4}
    told = folding_note(counted, ["topic"])
    assert "about 4 distinct contents" in told
    assert "(topic)" in told
    assert "50.00% of 4 publications had other attributes" in told
