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
        ),
        pattern=r"Arra?y?o?w?MemoryError|node running low on memory|unable to allocate [\d.]+ [kmgt]i?b\b|OOMKilling|java heap space",
        example="numpy._core._exceptions._ArrayMemoryError: Unable to allocate 14.9 GiB for an array",
        counter_example="unable to allocate 3 seats for the array of guests",
        certain=False,
    ),
    Rule(
        failure_class="shm_exhausted",
        needles=("allocate shared memory", "object store size exceeds /dev/shm"),
        pattern=r"unable to allocate shared memory ?\(?shm|size exceeds /dev/shm",
        example="RuntimeError: unable to allocate shared memory(shm) for file </torch_77_1_3>: Resource temporarily unavailable (11)",
        counter_example="Unable to allocate time for shared memories",
    ),
    Rule(
        failure_class="dataloader_failure",
        needles=(
            "pin memory thread exited",
            "process in the process pool was terminated",
            "brokenprocesspool",
        ),
        pattern=r"pin memory thread exited|process pool was terminated abruptly|BrokenProcessPool",
        example="RuntimeError: Pin memory thread exited unexpectedly",
        counter_example="pin memory thread started",
        certain=False,
        vague=True,
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
        certain=False,
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
        ),
        pattern=r"tarfile\.ReadError|corrupt snappy|decompressing data|JSONDecodeError|codec can't decode byte|magic bytes not found"
        r"|BadGzipFile|LZMAError|ZstdError|lz4\w*.{0,40}(?:error|corrupt)|DataLossError|invalid jpeg",
        example="zlib.error: Error -3 while decompressing data: incorrect header check",
        counter_example="time spent decompressing: 3 s",
        certain=False,
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
        failure_class="object_store",
        needles=(
            "refresherror",
            "authenticationfailed",
            "aws error",
            "fstimeouterror",
            "readtimeouterror",
            "connecttimeouterror",
            "requestlimitexceeded",
            "serverbusy",
            "throttl",
            "nosuchbucket",
            "signaturedoesnotmatch",
            "invalidtoken",
            "ratelimitexceeded",
        ),
        pattern=r"google\.auth.{0,60}RefreshError|(?:azure|blob|s3|gs://).{0,200}AuthenticationFailed|\bAWS Error\b|FSTimeoutError"
        r"|(?:botocore|boto3|s3|amazonaws).{0,120}(?:Read|Connect)TimeoutError|RequestLimitExceeded|ErrorCode:ServerBusy"
        r"|(?:Throttling|Throttled)(?:Exception|Error)?\b.{0,80}(?:operation|request|bucket|s3)|NoSuchBucket|SignatureDoesNotMatch|\(InvalidToken\)|rateLimitExceeded",
        example="fsspec.exceptions.FSTimeoutError: s3://bucket/part-1",
        counter_example="GPU clocks throttle at 85 degrees",
    ),
    Rule(
        failure_class="service_error",
        needles=("redis", "http error 5", "kafka", "consul", "zookeeper", "vault"),
        pattern=r"redis\.exceptions\.\w*(?:Connection|Timeout)Error|HTTP Error 50[0234]\b|(?:kafka|consul|zookeeper|vault)\w*.{0,60}"
        r"(?:NoBrokersAvailable|ConnectionLoss|ConnectionError|unavailable|timed? ?out)",
        example="redis.exceptions.ConnectionError: Error 111 connecting to redis:6379. Connection refused.",
        counter_example="INFO redis connected, 3 keys",
        certain=False,
    ),
)
