"""Texts of what feeds a job: encoded samples, files, memory of its host, stores of objects, services."""

from __future__ import annotations

from ett_core.failures.rule import Rule

DATA = (
    Rule(
        failure_class="host_oom",
        needles=(
            "arraymemoryerror",
            "arrowmemoryerror",
            "running low on memory",
            "unable to allocate",
            "java heap space",
            "oomkilling",
            "memory limit",
            "term_memlimit",
            "pbs: job killed: mem",
        ),
        pattern=r"Arra?y?o?w?MemoryError|node running low on memory|unable to allocate [\d.]+ [kmgt]i?b\b|OOMKilling|java heap space"
        r"|exceeded (?:the |its )?(?:job |step |task )?memory limit|TERM_MEMLIMIT|PBS: job killed: mem",
        example="numpy._core._exceptions._ArrayMemoryError: Unable to allocate 14.9 GiB for an array",
        counter_example="unable to allocate 3 seats for the array of guests",
    ),
    Rule(
        failure_class="checkpoint_corrupt",
        needles=("badzipfile", "not a zip file", "unexpected eof", "pytorchfilereader"),
        pattern=r"(?:BadZipFile|not a zip file).{0,160}(?:checkpoint|ckpt|\.pt\b|\.pth\b|\.safetensors)|unexpected EOF, expected \d+ more bytes",
        example="RuntimeError: unexpected EOF, expected 8812 more bytes. The file might be corrupted.",
        counter_example="zipfile.BadZipFile: File is not a zip file: data/images-7.zip",
    ),
    Rule(
        failure_class="checkpoint_corrupt",
        needles=("torch._c.pytorchfilereader(",),
        example="    super().__init__(torch._C.PyTorchFileReader(name_or_buffer))",
        counter_example="see the documentation of PyTorchFileReader",
        vague=True,
    ),
    Rule(
        failure_class="data_corrupt",
        needles=(
            "tarfile.readerror",
            "corrupt snappy",
            "decompressing data",
            "jsondecodeerror",
            "can't decode byte",
            "magic bytes not found",
            "badgzipfile",
            "lzmaerror",
            "zstderror",
            "lz4",
            "error -3",
            "decodererror",
            "datalosserror",
            "invalid jpeg",
            "premature end of",
        ),
        pattern=r"tarfile\.ReadError|corrupt snappy|decompressing data|JSONDecodeError|codec can't decode byte|magic bytes not found"
        r"|BadGzipFile|LZMAError|ZstdError|lz4\w*.{0,40}(?:error|corrupt)|DataLossError|invalid jpeg|premature end of (?:jpeg|file)",
        example="zlib.error: Error -3 while decompressing data: incorrect header check",
        counter_example="time spent decompressing: 3 s",
    ),
    Rule(
        failure_class="storage_io",
        needles=(
            "errno 107]",
            "errno 70]",
            "errno 103]",
            "errno 108]",
            "errno 112]",
            "errno 110]",
            "communication error on send",
        ),
        pattern=r"\[errno (?:107|70|103|108|112|110)\].{0,120}'/|communication error on send.{0,60}'/",
        example="OSError: [Errno 107] Transport endpoint is not connected: '/mnt/gcsfuse/data'",
        counter_example="OSError: [Errno 107] Transport endpoint is not connected",
    ),
    Rule(
        failure_class="config_error",
        needles=(
            "401 client error",
            "403 client error",
            "404 client error",
            "gatedrepoerror",
            "repositorynotfounderror",
            "revisionnotfounderror",
            "entrynotfounderror",
            "api_key not configured",
            "invalid user token",
            "invalid username or password",
        ),
        pattern=r"40[134] client error(?!.{0,200}(?:amazonaws|storage\.googleapis|blob\.core))|GatedRepoError"
        r"|(?<!Local)(?:Repository|Revision|Entry)NotFoundError|api_key not configured|invalid user token|invalid username or password",
        example="requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://huggingface.co/org/model",
        counter_example="huggingface_hub.errors.HfHubHTTPError: 429 Client Error: Too Many Requests for url",
    ),
    Rule(
        failure_class="object_store",
        needles=("when calling the", "storage.googleapis.com"),
        pattern="an error occurred \\(\\w{1,60}\\) when calling the \\w{0,40}(?:Object|Part|Multipart|Bucket)\\w{0,40} operation|(?:Forbidden|Unauthorized|NotFound|BadGateway|InternalServerError|GatewayTimeout): \\d{3}.{0,40}storage\\.googleapis\\.com",
        example="OSError: [Errno 5] An error occurred (InternalError) when calling the UploadPart operation: We encountered an internal error.",
        counter_example="an error occurred when calling the operator",
        certain=True,
    ),
    Rule(
        failure_class="object_store",
        needles=("remoteerror: ",),
        pattern=r"\bRemoteError: \w{1,20}://",
        example="not published now: RemoteError: s3://models/dlrm: OSError: 503 Slow Down",
        counter_example="RemoteError: the other side has hung up",
    ),
    Rule(
        failure_class="checkpoint_corrupt",
        needles=("invalid magic number; corrupt file", ".distcp", ".metadata'"),
        pattern="invalid magic number; corrupt file|no such file or directory: .{0,300}(?:\\.distcp|/\\.metadata)\\b",
        example="FileNotFoundError: [Errno 2] No such file or directory: '/ckpt/step_10/__3_0.distcp'",
        counter_example="wrote /ckpt/step_10/__3_0.distcp",
    ),
)
