"""What every refusal must be: one line that ends in a full stop and names what was wrong."""


def assert_sentence(error, *names):
    """`error` is what pytest.raises yields, or the exception itself."""
    text = str(getattr(error, "value", error))
    assert text.strip(), "the message is empty"
    assert text.endswith("."), text
    assert "\n" not in text, text
    for name in names:
        assert name in text, f"{name!r} is missing in: {text}"
