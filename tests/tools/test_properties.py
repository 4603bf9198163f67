"""Properties files: Java's format, and settings that are followed or refused, never passed over."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.client import SaslPlain, SaslScram
from kproto.tools.connecting import connect
from kproto.tools.errors import ToolError
from kproto.tools.properties import Settings, Tls, parse_properties, settings
from tests.tools.commands import admin

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password='
SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password='


def test_javas_format():
    text = r"""
    # a comment
    ! another
    plain=value
    spaced  =  value with = and : in it
    colon:value
    blank value
    empty=
    bare
    key\ with\=blanks = x
    escaped=tab\tunicode\u00e9 backslash\\
    continued = one,\
        two,\
        # three
    plain=last
    """
    assert parse_properties(text) == {
        "plain": "last",
        "spaced": "value with = and : in it",
        "colon": "value",
        "blank": "value",
        "empty": "",
        "bare": "",
        "key with=blanks": "x",
        "escaped": "tab\tunicodeé backslash\\",
        "continued": "one,two,# three",
    }


def _escaped(text: str) -> str:
    return "".join(f"\\u{ord(character):04x}" for character in text)


basic = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), min_size=1)


@given(st.dictionaries(basic, basic))
def test_what_is_escaped_comes_back(wanted):
    text = "\n".join(f"{_escaped(key)}={_escaped(value)}" for key, value in wanted.items())
    assert parse_properties(text) == wanted


@given(st.text())
def test_any_text_is_read_or_refused(text):
    try:
        assert all(isinstance(value, str) for value in parse_properties(text).values())
    except ToolError:
        assert "\\u" in text


def test_what_java_refuses():
    with pytest.raises(ToolError, match=r"^my\.properties: invalid escape \\u12$"):
        parse_properties("key=\\u12", "my.properties")


def test_what_is_followed():
    assert settings({}) == Settings()
    assert settings({"client.id": "me", "default.api.timeout.ms": "5", "retries": "3"}) == Settings(
        client_id="me", timeout_ms=5
    )
    assert settings({"security.protocol": "ssl"}).tls == Tls()
    secure = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": PLAIN + r'"p\"w=;";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/ca.pem",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": "/me.pem",
        "ssl.key.password": "secret",
        "ssl.endpoint.identification.algorithm": "",
    }
    assert settings(secure) == Settings(
        tls=Tls(
            trusted_path="/ca.pem", key_path="/me.pem", key_password="secret", check_hostname=False
        ),
        sasl=SaslPlain("u", 'p"w=;'),
    )
    # Settings of a protocol that is not used have no effect.
    assert settings(secure | {"security.protocol": "PLAINTEXT"}) == Settings()


def test_scram_is_followed():
    scram = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": SCRAM + "p;",
    }
    assert settings(scram).sasl == SaslScram("SCRAM-SHA-512", "u", "p")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"security.protocol": "TLS"},
            "security.protocol must be one of PLAINTEXT, SSL, SASL_PLAIN",
        ),
        ({"ssl.provider": "x"}, "ssl.provider is not supported"),
        ({"sasl.oauthbearer.token.endpoint.url": "x"}, "sasl.oauthbearer.token.endpoint.url is"),
        ({"ssl.truststore.location": "/a.jks"}, "ssl.truststore.type must be PEM; JKS stores"),
        ({"ssl.keystore.type": "PKCS12"}, "ssl.keystore.type must be PEM; PKCS12 stores"),
        ({"ssl.endpoint.identification.algorithm": "x"}, "ssl.endpoint.identification.algorithm"),
        ({"default.api.timeout.ms": "1s"}, "default.api.timeout.ms must be a number"),
        (
            {"security.protocol": "SASL_SSL"},
            "sasl.mechanism must be one of PLAIN, SCRAM-SHA-256, SCRAM",
        ),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"},
            "sasl.jaas.config is missing",
        ),
        (
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": SCRAM + '"p";',
            },
            "sasl.jaas.config reads ...PlainLoginModule required",
        ),
        (
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": "a.PlainLoginModule required username=u;",
            },
            "sasl.jaas.config needs a username and a password",
        ),
    ],
)
def test_what_is_refused(changes, text):
    with pytest.raises(ToolError) as caught:
        settings(changes, "f.properties")
    assert str(caught.value).startswith(f"f.properties: {text}")


async def test_files_that_cannot_be_used(tmp_path):
    path = tmp_path / "client.properties"
    arguments = ["topics", "--list", "--bootstrap-server=127.0.0.1:1", f"--command-config={path}"]
    code, out, err = await admin(*arguments)
    assert (code, err) == (1, f"kproto: {path}: No such file or directory\n")
    assert out == f"Error: {path}: No such file or directory\n"
    path.write_text(
        f"security.protocol=SSL\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={tmp_path}/none.pem\n"
    )
    code, _, err = await admin(*arguments)
    assert code == 1
    assert err.startswith("kproto: TLS: the certificates of the properties file cannot be used: ")


async def test_the_files_client_id_goes_before_the_tools():
    access = connect("127.0.0.1:1", Settings(client_id="mine"), client_id="tool")
    assert access._client_id == "mine"
    await access.close()
