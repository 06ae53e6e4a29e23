"""Texts of the training software: checkpoints, compilers, environments, settings, the loss itself."""

from __future__ import annotations

from ett_core.failures.rule import CONTEXT, WARNING, Rule

SOFTWARE = (
    Rule(
        failure_class="concurrent_start",
        needles=("another start writes to", "another process has taken over"),
        pattern=r"\b(?:OccupiedError|LostError): another (?:start writes to|process has taken over) ",
        example="ett_trainer_hooks.pipeline.takes.LostError: another process has taken over /shared/dlrm/writer:"
        " process 4711 on n7, of job dlrm, attempt 1000, since 2026-11-30 13:05:10",
        counter_example="a start that finds that another start writes to the same directory waits for it",
        certain=True,
    ),
    Rule(
        failure_class="environment_error",
        needles=("not compiled with cuda", "not compiled with hip", "without cuda support"),
        pattern=r"not compiled with (?:cuda|hip|nccl)|without cuda support",
        example="AssertionError: Torch not compiled with CUDA enabled",
        counter_example="this wheel is compiled with CUDA 13",
    ),
    Rule(
        failure_class="checkpoint_save_failed",
        needles=("permissionerror", "permission denied"),
        pattern=r"permission denied.{0,120}(?:\.distcp|\.metadata|ckpt|checkpoint|\.pt\b|\.safetensors)",
        example="PermissionError: [Errno 13] Permission denied: '/ckpt/step_5/__1_0.distcp'",
        counter_example="PermissionError: [Errno 13] Permission denied: '/data/part-3'",
    ),
    Rule(
        failure_class="config_error",
        needles=("error: parser key",),
        example="train.py: error: Parser key \"model.depth\": Expected a <class 'int'>",
        counter_example="the parser keyed in the model",
    ),
    Rule(
        failure_class="nan_loss",
        needles=("nan", "inf", "finite", "loss scale"),
        pattern=r"(?:loss|grad\w*|norm|logits|outputs?).{0,40}(?:\bis|\bbecame|\bwas|\bare|contains?|=|:) ?(?:\binfinite or nan|nan\b|inf\b|infinite|not finite|non-?finite)"
        r".{0,80}(?:stop|abort|exit|terminat|\bending\b|at (?:step|iter)|!|\braise|--)"
        r"|(?:\w+Error|Exception|assert\w*).{0,60}(?:loss|grad\w*|norm).{0,40}(?:\bnan\b|\binf\b|infinite|not finite|non-?finite)"
        r"|(?:\w+Error|Exception).{0,60}(?:\bnan\b|non-?finite).{0,60}(?:loss|grad|norm)"
        r"|FloatingPointError|loss scale (?:already )?(?:at|reached) (?:its )?minimum|found NaN in .{0,60}(?:loss|grad)"
        r"|(?:nan|non-?finite)\w* .{0,40}(?:loss|grad\w*).{0,60}(?:stopping|aborting|exiting|ending|terminat)",
        example="RuntimeError: loss is nan at step 4410 -- input_dict: {...}",
        counter_example="WARNING grad norm is inf, skipping step 12",
        certain=True,
    ),
    Rule(
        failure_class="checkpoint_save_failed",
        needles=("while serializing",),
        pattern=r"SafetensorError: .{0,40}\bwhile serializing(?!.{0,200}(?:no space left|storagefull|quota))",
        example="safetensors_rust.SafetensorError: Error while serializing: I/O error: Invalid argument (os error 22)",
        counter_example="safetensors_rust.SafetensorError: Error while deserializing header: InvalidHeader",
    ),
    Rule(
        failure_class="checkpoint_corrupt",
        needles=(
            "failed finding central directory",
            "invalid load key",
            "pytorchstreamreader",
            "unpicklingerror",
            "invalid magic number",
            "incompletemetadata",
            "metadataincompletebuffer",
            "unexpected eof",
            "checkpoint",
            "safetensorerror",
        ),
        pattern=r"PytorchStreamReader failed|failed finding central directory|invalid load key|UnpicklingError"
        r"|(?:checkpoint|torch\.load|\.pt\b|\.distcp|safetensors?).{0,120}(?:corrupt|truncat|checksum (?:mismatch|error|fail)|invalid header|unexpected (?:end|eof))"
        r"|SafetensorError.{0,60}(?:deserializ|invalid|incomplete)|MetadataIncompleteBuffer|(?:corrupt|truncat|incomplet|damaged)\w* .{0,40}checkpoint",
        example="RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",
        counter_example="checkpoint checksum verified",
        certain=True,
    ),
    Rule(
        failure_class="checkpoint_corrupt",
        needles=("ran out of input",),
        example="EOFError: Ran out of input",
        counter_example="EOFError: EOF when reading a line",
    ),
    Rule(
        failure_class="checkpoint_save_failed",
        needles=("some tensors share memory",),
        example="RuntimeError: Some tensors share memory, this will lead to duplicate memory on disk",
        counter_example="tensors may share memory",
    ),
    Rule(
        failure_class="checkpoint_save_failed",
        needles=("pytorchstreamwriter", "failed to save", "checkpoint", "save_checkpoint", "error saving"),
        pattern=r"PytorchStreamWriter failed|(?:failed to|error|could not|cannot|unable to|failed) (?:save|saving|writ\w+).{0,40}checkpoint"
        r"|checkpoint.{0,60}(?:save|saving|write|writing|upload\w*) (?:of .{0,40})?(?:failed|failure|error)\b|checkpoint_failed",
        example="RuntimeError: [enforce fail at inline_container.cc:471] . PytorchStreamWriter failed writing file data/807",
        counter_example="checkpoint saved, error of the loss 0.3",
        vague=True,
    ),
    Rule(
        failure_class="checkpoint_incompatible",
        needles=(
            "missing key",
            "unexpected key",
            "size mismatch",
            "error(s) in loading state_dict",
            "loaded state dict",
            "doesn't match the size of optimizer",
            "parameter group",
            "shape mismatch",
        ),
        pattern=r"(?:missing|unexpected) keys?(?:\(s\))? in (?:checkpoint |source )?state_dict|size mismatch for \S"
        r"|error\(s\) in loading state_dict|loaded state dict (?:has|contains)|match the size of optimizer"
        r"|(?:checkpoint|state_dict).{0,80}shape mismatch|size mismatch between saved",
        example="RuntimeError: Missing key in checkpoint state_dict: model.2.weight",
        counter_example="INFO no missing keys, 0 unexpected keys",
        certain=True,
    ),
    Rule(
        failure_class="checkpoint_incompatible",
        needles=("predictions differ by up to",),
        pattern=r"Error: .{0,120}predictions differ by up to",
        example="DisagreementError: the published model disagrees with the trainer: predictions differ by up to 0.5",
        counter_example="INFO predictions differ by up to 1e-08, which is allowed",
    ),
    Rule(
        failure_class="compile_failure",
        needles=(
            "backendcompilerfailed",
            "inductorerror",
            "c++ compile error",
            "cppcompileerror",
            "compilationerror",
            "compileerror",
            "ptxas",
            "ptxaserror",
            "nvcc",
            "ninja",
            "out of resource",
            "outofresources",
            "triton",
            "ld returned",
            "cannot find -l",
            "lower",
            "torchdynamo",
            "torch._dynamo.exc",
            "error building extension",
            "invalidcxxcompiler",
            "c compiler",
            "passmanager::run failed",
            "gcc",
            "g++",
            "python.h",
        ),
        pattern=r"BackendCompilerFailed|InductorError|C\+\+ compile error|CppCompileError|\bCompil(?:ation|e)Error\b|ptxas (?:fatal|error)"
        r"|PTXASError|OutOfResources\b|out of resource: shared memory|triton\.runtime\.errors|ld returned \d|cannot find -l\w"
        r"|torch\._dynamo\.exc\.(?!RecompileLimit)\w+|error building extension|InvalidCxxCompiler|PassManager::run failed"
        r"|no such file or directory: '?(?:g\+\+|gcc|c\+\+|clang\+*|nvcc)|python\.h: no such file|LoweringException"
        r"|failed to find (?:a )?c compiler|(?:ninja|nvcc|g\+\+|gcc).{0,60}(?:fatal error|exit status \d|returned non-zero)",
        example="torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:",
        counter_example="triton_mm_275 0.0745 ms 100.0% ACC_TYPE='tl.float32'",
        vague=True,
    ),
    Rule(
        failure_class="environment_error",
        needles=(
            "modulenotfounderror",
            "undefined symbol",
            "cannot open shared object",
            "glibc",
            "command not found",
            "no module named",
            "symbol not found",
            "no such file or directory",
            "cxxabi",
            "incompatible function",
            "compiled using numpy 1",
            "version mismatch",
            "exec format error",
            "oserror: lib",
        ),
        pattern=r"ModuleNotFoundError|undefined symbol|cannot open shared object file|GLIBC(?:XX)?_[\d.]+.{0,20}not found"
        r"|CXXABI_[\d.]+.{0,20}not found|no module named|(?:python\d?|torchrun|srun|bash|sh)\b.{0,80}command not found|exec format error"
        r"|(?:cudnn|nccl|cuda|numpy|protobuf|torch\w*)\b.{0,40}version mismatch|compiled using numpy 1|can't open file .{0,200}no such file",
        example="ImportError: flash_attn_2_cuda.so: undefined symbol: _ZN3c104cuda9SetDeviceEi",
        counter_example="WARNING optional module not installed: no such file or directory",
        certain=True,
    ),
    Rule(
        failure_class="environment_error",
        needles=("importerror",),
        pattern=r"\bImportError\b",
        example="ImportError: cannot import name 'fused_rope' from 'acme.ops'",
        counter_example="no import errors were met",
    ),
    Rule(
        failure_class="config_error",
        needles=(
            "unrecognized arguments",
            "invalid choice",
            "the following arguments are required",
            "plannererror",
            "unable to find a plan",
            "invalid argument",
            "configerror",
            "configattributeerror",
            "configcomposition",
            "configkeyerror",
            "validationerror",
            "missingmandatoryvalue",
            "must be divisible",
            "not divisible",
            "unrecognised arguments",
            "invalid device ordinal",
            "usage:",
            "world size",
            "worldsize",
            "error: argument",
            "no such option",
            "invalid value for",
        ),
        pattern=r"error: (?:unrecogni[sz]ed arguments|argument .{0,80}(?:invalid|expected)|the following arguments are required)"
        r"|PlannerError|unable to find a plan|Config(?:Attribute|Key|Composition)?(?:Error|Exception)\b|\bValidationError\b|MissingMandatoryValue"
        r"|(?:must be|is not|not) divisible|invalid device ordinal|world ?_?size.{0,60}(?:must|mismatch|does not match|not equal)"
        r"|no such option|invalid value for ",
        example="train.py: error: unrecognized arguments: --learing-rate",
        counter_example="usage: train.py [-h] [--lr LR]",
    ),
    Rule(
        failure_class="checkpoint_stall",
        role=CONTEXT,
        needles=("saving", "checkpoint"),
        pattern=r"\bsaving\b.{0,60}(?:checkpoint|ckpt|model|state)|(?:start|begin)\w* .{0,30}(?:save|checkpoint)"
        r"|checkpoint\w*.{0,20}(?:save|saving) (?:started|begins|at step)",
        example="root - INFO - Saving latest checkpoint model trained for 3 complete epochs",
        counter_example="checkpoint saved in 12 s",
    ),
    Rule(
        failure_class="compile_slow",
        role=CONTEXT,
        needles=("compiling", "torch.compile", "autotune", "compilation"),
        pattern=r"\bcompiling (?:the )?(?:model|graph|kernel|module)|torch\.compile.{0,40}(?:start|begin|running)|compilation (?:start|begin|of)",
        example="INFO compiling the model with max-autotune",
        counter_example="g++ -c was compiling and loading fused kernels for others",
    ),
    Rule(
        failure_class="hang",
        needles=("stalled: no progress",),
        pattern=r"^stalled: no progress for \d+ s; ended by the launcher",
        example="stalled: no progress for 302 s; ended by the launcher",
        counter_example="no progress for 302 s on this node: ranks 0-1 in the loop",
        certain=True,
    ),
    Rule(
        failure_class="hang",
        role=CONTEXT,
        needles=(
            "no progress",
            "appears to be stuck",
            "seems to hang",
            "stalled for",
            "blocked for more than",
        ),
        pattern=r"no progress (?:for|since|in)|(?:appears|seems) to (?:be )?(?:stuck|hang|hung)"
        r"|stalled for|blocked for more than \d+ seconds",
        example="no progress for 600 s; rank 3 is still alive",
        counter_example="the run is not stalled",
        at_warning=True,
    ),
    Rule(
        failure_class="hang",
        role=CONTEXT,
        needles=('): "mainthread"',),
        pattern=r'\bThread (?:\d{1,10}|0x[0-9a-f]{1,16}) \((?:idle|active)[^()\n]{0,20}\): "MainThread"',
        example='Thread 206492 (idle): "MainThread"',
        counter_example="Thread 7 is idle: the MainThread works",
        weak=True,
        at_warning=True,
    ),
    Rule(
        failure_class="hang",
        role=CONTEXT,
        needles=("taking a long time", "taking too long", "taking longer than"),
        example="20:19:27 WARNING Data loading is taking a long time",
        counter_example="taking a long walk",
        weak=True,
        at_warning=True,
    ),
    Rule(
        failure_class="not_a_failure",
        role=WARNING,
        needles=("recompile_limit", "cache_size_limit", "deprecat"),
        pattern=r"hit config\.(?:cache_size|recompile)_limit|DeprecationWarning|FutureWarning",
        example="W0306 14:40:15.9 torch/_dynamo/convert_frame.py] torch._dynamo hit config.recompile_limit (8)",
        counter_example="recompile_limit = 8",
    ),
)
