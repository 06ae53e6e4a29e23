"""What of a job's output is kept, and what of it is not."""

from __future__ import annotations

import time

import pytest

from ett_core.redaction import TEXT_LIMIT, redacted, redacted_parts, without_secrets


@pytest.mark.parametrize(
    "text",
    [
        "password=hunter2hunter2",
        "export HF_TOKEN=hunter2hunter2",
        '{"api_key": "hunter2hunter2"}',
        "Authorization: Bearer hunter2hunter2",
        "authorization=Basic hunter2hunter2",
        "git clone https://me:hunter2hunter2@host/repo",
        "GET /x?access_token=hunter2hunter2&page=1",
        "using ghp_hunter2hunter2",
        "aws_secret_access_key = hunter2hunter2",
        "AccountKey=hunter2hunter2==;EndpointSuffix=core.windows.net",
        "got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJodW50ZXIyaHVudGVyMiJ9.hunter2hunter2_x",
        "key AIzahunter2hunter2hunter2",
        "x" * 200 + "_TOKEN_FILE_2: 'hunter2hunter2'",
        "connect --password hunter2hunter2 failed",
        "mysql -phunter2hunter2",
        "curl -u user:hunter2hunter2 http://x",
        "postgres://u:p@hunter2hunter2@host/db",
        "postgres://u:pa/hunter2hunter2@host/db",
        "https://hunter2hunter2@github.com/x.git",
        "https://hooks.slack.com/services/T0AAA/B0BBB/hunter2hunter2",
        "X-Amz-Signature=hunter2hunter2&x",
        "https://acc.blob.core.windows.net/c?sv=2020&sig=hunter2hunter2%3D",
        "DB_PASS=hunter2hunter2",
        "pwd=hunter2hunter2;",
        "passphrase: hunter2hunter2",
        "Cookie: session=hunter2hunter2",
        "Set-Cookie: sid=hunter2hunter2; Path=/",
        "{'password': 'two words hunter2hunter2'}",
        '{"password":"a\\"hunter2hunter2"}',
        "password=a,hunter2hunter2",
        "AWS_SECRET_ACCESS_KEY hunter2hunter2hunter2",
        "token hunter2hunter2789012345678",
        "Authorization: Token hunter2hunter2",
        "Authorization: Digest username=x, response=hunter2hunter2",
        "X-Api-Key: hunter2hunter2",
        "x-auth: hunter2hunter2",
        "sk_live_hunter2hunter2",
        "npm_hunter2hunter2aaaaaaaaaaaaaaa",
        "pypi-hunter2hunter2aaaaaaa",
        "SG.hunter2hunter2aaaaaaaa.bbbbbbbbbbbbbbb",
        "ya29.hunter2hunter2aaaaaaa",
        "GOCSPX-hunter2hunter2hunter2",
        "ghu_hunter2hunter2aaaaaaaaaaaaaaaaa",
        "dop_v1_hunter2hunter2",
        "xapp-1-hunter2hunter2",
        "AccountKey=hunter2hunter2==",
        "WANDB_API_KEY=hunter2hunter2",
        "os.environ['HF_TOKEN'] = 'hunter2hunter2'",
        "environ({'HF_TOKEN': 'hunter2hunter2', 'A': 'b'})",
        "b'HF_TOKEN': b'hunter2hunter2'",
        "HF_TOKEN => hunter2hunter2",
        "password\u001b[0m=\u001b[1mhunter2hunter2",
        "pass\u200bword=hunter2hunter2",
        "\u001b[31mTOKEN\u001b[0m: hunter2hunter2",
        "api key: hunter2hunter2",
        "client_secret=hunter2hunter2",
        "PASSWORD = 'hunter2hunter2'",
        "password:\thunter2hunter2",
        "<password>hunter2hunter2</password>",
        "machine x login y password hunter2hunter2",
    ],
)
def test_a_secret_does_not_leave_the_node(text):
    """Passwords, tokens and keys are replaced, whatever their form."""
    assert "hunter2" not in redacted(text)
    assert "***" in redacted(text)


@pytest.mark.parametrize(
    "text",
    [
        "tokens: 512 per sample",
        "RuntimeError: shape [2, 3]",
        "tcp://127.0.0.1:29500 refused",
        "forward pass: 0.3 s, pass 3 of 4",
        "wait timeout, key default_pg/0//cuda//timeline_0",
        "KeyError: 'model.key'; sharding_key: user_id",
        "--max-tokens 512 --tokenizer bert-base-uncased",
        "https://github.com/pytorch/pytorch/issues/1234567890 and ssh://git@github.com/x",
        "password authentication failed for user root",
        "token 5 of 10",
    ],
)
def test_what_is_no_secret_stays(text):
    """Words that look alike are left as they are."""
    assert redacted(text) == text


def test_what_a_terminal_would_obey_is_not_kept():
    """Colours, titles, bells, reversed text and nothing that shows; tabs and lines stay."""
    hostile = "\x1b[31ma\x1b[0m\x1b]0;title\x07\x00\tb\u202ec\ufeff\n\r\x9bd\udcff"
    assert redacted(hostile) == "a\tbc\nd"


def test_values_of_secret_variables_do_not_leave_the_node():
    """In whatever words they stand; paths, numbers and switches are none."""
    environ = {
        "HF_TOKEN": "opensesame",
        "DB_PASS": "opensesame-longer",
        "SSH_AUTH_SOCK": "/run/agent",
        "MAX_TOKEN": "100000000",
        "TOKENIZERS_PARALLELISM": "true-or-false",
    }
    text = "opensesame-longer opensesame /run/agent 100000000 true-or-false"
    assert without_secrets(text, environ) == "*** *** /run/agent 100000000 true-or-false"


@pytest.mark.parametrize("prefix", ["", "[rank0]: ", "  "])
def test_the_rest_of_a_private_key_whose_beginning_is_gone_is_no_text(prefix):
    """As at the beginning of a tail, or behind a gap."""
    body = "".join(f"{prefix}hunter2{'x' * 57}\n" for _ in range(3))
    text = f"{body}{prefix}hunter2==\n{prefix}-----END RSA PRIVATE KEY-----\nlast"
    assert "hunter2" not in redacted(text)
    assert redacted(text).endswith("last")


def test_a_text_is_cut_to_its_limit_in_bytes():
    """Also where characters are longer than a byte."""
    assert len(redacted("ä" * 10_000).encode()) <= TEXT_LIMIT


def test_no_secret_hides_across_two_parts_and_all_parts_are_short():
    """Also a private key over many lines, and a line that is longer than a part."""
    key = (
        "-----BEGIN RSA PRIVATE KEY-----\n"
        + "hunter2Hunter2hunter2\n" * 900
        + "-----END RSA PRIVATE KEY-----"
    )
    text = "x" * 8180 + " password=hunter2\n" + key + "\n" + "ö" * 9000 + "\nlast"
    parts = redacted_parts(text)
    assert all(len(part.encode()) <= TEXT_LIMIT for part in parts)
    assert "hunter2" not in "".join(parts)
    assert parts[-1].endswith("last")


@pytest.mark.parametrize(
    "unit",
    [
        *("a-", "token-", "a://", "password", "a.", "authorization ", "bearer "),
        *(
            "\x1b[",
            "://a:",
            "token='",
            "password ",
            "-----BEGIN PRIVATE KEY-----",
            "mysql -",
            "_key=",
            "A" * 61 + "\n",
        ),
        *("pass=", " -u a", "--token ", "cookie:", "?sig=", "[r]: ", "\x1b]"),
    ],
)
def test_hostile_text_takes_linear_time(unit):
    """Twice the text takes about twice the time: no pattern tries every pair of places."""

    def seconds(length):
        text = (unit * length)[:length]
        began_s = time.process_time()
        redacted_parts(text)
        return time.process_time() - began_s

    short_s = max(min(seconds(1 << 14) for _ in range(3)), 1e-4)
    assert min(seconds(1 << 17) for _ in range(2)) < 8 * 4 * short_s
