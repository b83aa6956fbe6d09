from tidings.demonstration.sample_system import market_and_weather
from tidings.model import reading
from tidings.prediction.predict import predict


def test_the_sample_is_busy_but_not_overloaded_and_its_shares_spread_widely():
    outcome = predict(market_and_weather(), by="theory")
    shares = outcome.subscribers["on_time"]
    assert 0.6 <= outcome.brokers["utilisation"].max() <= 0.8
    assert 0.4 <= shares.min() <= 0.55
    assert shares.max() >= 0.99
    assert len(shares) == 100
    assert {each.kind for each in outcome.remarks} <= {"not held"}  # theory alone was asked


def test_the_sample_is_always_the_same_and_survives_its_file():
    system = market_and_weather()
    assert market_and_weather() == system
    assert reading.loads(reading.dumps(system)) == system
