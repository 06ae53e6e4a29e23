"""Texts of whole families, in the form in which programs print them, by the classes that are right.

What libraries, launchers, stores and hubs say of failures in words that vary: the kind must be met,
not the sentence; and lines that look alike and end nothing.
"""

from __future__ import annotations

FAMILY_TEXTS: tuple[tuple[str, str], ...] = (
    (
        "config_error",
        "srun: error: Task launch for StepId=12.4 failed on node n7: Unable to layout tasks on given cpus",
    ),
    (
        "config_error",
        "srun: error: Unable to create step for job 19: Requested node configuration is not available",
    ),
    ("service_error", "srun: error: Task launch for 36.0 failed on node n131: Job credential expired"),
    (
        "node_failure",
        "slurmstepd: error: execve(): /tmp/slurmd/job29/slurm_script: No such file or directory",
    ),
    (
        "compile_failure",
        "RuntimeError: CompileError: triton_poi_fused_add_0: error: No module named 'torch.x'",
    ),
    (
        "data_corrupt",
        "ValueError: ('/c/s-0.tar (gs://b/s-0.tar) is not a tar archive, but a , contains b'./'', 'x')",
    ),
    (
        "user_code",
        (
            "Error when constructing operator: readers__Webdataset encountered:\n[/opt/dali/operators/reader/loader.h:223] "
            'Assert on "num_shards_ > shard_id_" failed'
        ),
    ),
    (
        "native_crash",
        "subprocess.CalledProcessError: Command '['python', 'a.py']' died with <Signals.SIGBUS: 7>.",
    ),
    (
        "host_oom",
        "subprocess.CalledProcessError: Command '['python', 'a.py']' died with <Signals.SIGKILL: 9>.",
    ),
    (
        "collective_timeout",
        "[rank14]:[E ProcessGroupNCCL.cpp:1537] [PG 1 Rank 14] Timeout at NCCL work: 15734, last enqueued NCCL work: 15735",
    ),
    (
        "gpu_app_fault",
        "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx( handle, opa )`",
    ),
    ("gpu_app_fault", "torch.AcceleratorError: CUDA error: operation not permitted when stream is capturing"),
    (
        "gpu_app_fault",
        "THCudaCheck FAIL file=/tmp/x/THCStorage.c line=147 error=4 : unspecified launch failure",
    ),
    ("cuda_driver", "Failed to initialize NVML: Unknown Error"),
    ("cuda_driver", 'docker: could not select device driver "" with capabilities: [[gpu]].'),
    (
        "gpu_oom",
        "E xla_util.cc:88]   (1) RESOURCE_EXHAUSTED: Attempting to reserve 6.4G at the bottom of memory. That was not possible.",
    ),
    ("host_oom", "[ERROR] [launch.py:321:sigkill_handler] ['python', 'main.py'] exits with return code = -9"),
    (
        "native_crash",
        "[ERROR] [launch.py:321:sigkill_handler] ['python', 'main.py'] exits with return code = -11",
    ),
    ("unknown", "[ERROR] [launch.py:321:sigkill_handler] ['python', 'main.py'] exits with return code = 1"),
    ("not_a_failure", "INFO launch.py: python main.py exits with return code = 0"),
    (
        "host_oom",
        "mpirun noticed that process rank 3 with PID 77 on node n4 exited on signal 9 (Killed).",
    ),
    ("host_oom", "slurmstepd: error: Exceeded job memory limit at some point."),
    ("host_oom", "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit."),
    (
        "config_error",
        "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://huggingface.co/o/m",
    ),
    (
        "config_error",
        "huggingface_hub.errors.GatedRepoError: 403 Client Error. (Request ID: Root=1-6)\nCannot access gated repo for url",
    ),
    (
        "service_error",
        "requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://hub/x",
    ),
    ("service_error", "requests.exceptions.ConnectionError: ('Connection aborted.', OSError(0))"),
    ("service_error", "wandb: ERROR Run initialization has timed out after 90.0 sec."),
    ("service_error", "wandb: ERROR Error communicating with wandb process"),
    ("not_a_failure", "wandb: Network error (ReadTimeout), entering retry loop."),
    (
        "object_store",
        "RuntimeError: Failed to download s3://b/train/index.json -> /tmp/index.json. Got errors:\n[ClientError('Object s3://b/train/index.json not found!')]",
    ),
    ("object_store", "botocore.exceptions.IncompleteReadError: 512 read, but total bytes expected is 1024."),
    ("service_error", "google.api_core.exceptions.DeadlineExceeded: 504 Deadline Exceeded"),
    ("storage_io", "OSError: [Errno 117] Structure needs cleaning: '/data/part-3'"),
    ("network_fault", "TimeoutError: [Errno 110] Connection timed out"),
    (
        "network_fault",
        "n1:5:9 [0] create_component:459 NCCL WARN NET/OFI Couldn't open AV. RC: -22, ERROR: Invalid argument",
    ),
    (
        "network_fault",
        "n1:5:9 [5] misc/socket.cc:483 NCCL WARN socketStartConnect: Connect to fe80::9%ib1<17943> failed : Software caused connection abort",
    ),
    ("rendezvous_failure", "RuntimeError: connect() timed out. Original timeout was 60000 ms."),
    (
        "rendezvous_failure",
        "n1:5:9 [0] bootstrap.cc:131 NCCL WARN Bootstrap Root : rank 1 of 8 ranks has already checked in",
    ),
    ("checkpoint_incompatible", "RuntimeError: Expected 2 entries in state dict, but got 4."),
    ("checkpoint_incompatible", "KeyError: 'optimizer_state_dict'"),
    (
        "checkpoint_corrupt",
        "safetensors_rust.SafetensorError: Error while deserializing header: InvalidHeader",
    ),
    (
        "data_corrupt",
        "datasets.exceptions.DatasetGenerationError: An error occurred while generating the dataset",
    ),
    ("data_corrupt", "pandas.errors.ParserError: Error tokenizing data. C error: Expected 3 fields, saw 5"),
    (
        "config_error",
        "AssertionError: Number of layers should be divisible by the pipeline-model-parallel size",
    ),
    (
        "config_error",
        "lightning.fabric.utilities.exceptions.MisconfigurationException: `Trainer(devices=9)` value is not a valid input",
    ),
    ("config_error", "Could not override 'task.data'.\nKey 'data' is not in struct\n    full_key: task.data"),
    (
        "evicted",
        "trainer-56b4b9d9vkc4t   ns   Evicted   node-9   Pod The node had condition: [DiskPressure].",
    ),
    ("peer_failure", "ray.exceptions.RayActorError: The actor died unexpectedly before finishing this task."),
    (
        "peer_failure",
        "(raylet) A worker died or was killed while executing a task by an unexpected system error. Worker ID: 0e3a",
    ),
    (
        "peer_failure",
        "UNAVAILABLE: The following tasks are unhealthy (stopped sending heartbeats): /job:jax_worker/replica:0/task:3",
    ),
    (
        "user_cancelled",
        "WARNING:torch.distributed.elastic.agent.server.api:Received 2 death signal, shutting down workers\nWARNING:torch.distributed.elastic.multiprocessing.api:Sending process 4797 closing signal SIGINT",
    ),
    (
        "native_crash",
        "terminate called after throwing an instance of 'std::length_error'\n  what():  basic_string::append",
    ),
    ("native_crash", "F0514 10:39:14.850065  3012 im2col.cu:49] Check failed: error == 0 (4 vs. 0)"),
    ("gpu_hardware", "amdgpu 0000:c5:00.0: amdgpu: MES might be in unrecoverable state, issue a GPU reset"),
    ("gpu_app_fault", "n1:5:9 [2] transport/nvls.cc:244 NCCL WARN Cuda failure 1 'invalid argument'"),
    ("gpu_app_fault", "rtEventQueryStatus execute failed, reason=[aicore timeout][FUNC:FuncErrorReason]"),
    (
        "gpu_oom",
        "E rocm_driver.cc:606] failed to allocate 27.9GiB (29958881280 bytes) from device: HIP_ERROR_OutOfMemory",
    ),
    (
        "straggler",
        "W horovod/common/stall_inspector.cc:105] One or more tensors were submitted to be reduced by subset of ranks and are waiting for remainder of ranks for more than 60 seconds.\nStalled ranks:\n6: [horovod_allreduce.0]",
    ),
    (
        "peer_failure",
        "errors_impl.UnknownError: Horovod has been shut down. This was caused by an exception on one of the ranks",
    ),
    ("collective_timeout", "EI0002: The wait execution of the Notify register times out."),
    ("environment_error", "XlaRuntimeError: INTERNAL: NCCL operation failed: Unable to load NCCL library."),
    (
        "data_corrupt",
        "decord._ffi.base.DECORDError: [16:56:24] video_reader.cc:151: Check failed: st_nb >= 0",
    ),
    ("node_failure", "node4   NotReady   <none>   21m   v1.20.6"),
    (
        "node_failure",
        "I0513 06:11:28.8 1 node_lifecycle_controller.go:885] Node kind-worker is unresponsive as of 06:11:28",
    ),
    ("node_failure", "ORTE has lost communication with a remote daemon."),
    ("host_oom", "1488666      train_2012+       main      bsc32          4 OUT_OF_ME+    0:125"),
    (
        "checkpoint_incompatible",
        "megatron.core.dist_checkpointing.core.CheckpointingException: Global shape mismatch",
    ),
    ("rendezvous_failure", "socket.gaierror: [Errno -3] Temporary failure in name resolution"),
    ("unknown", 'Traceback (most recent call last):\n  File "train.py", line 7, in <module>'),
    ("preempted", "Cluster is preempted (status: INIT). Recovering..."),
    ("preempted", "INFO: TPU node was preempted, exiting"),
    ("preempted", "The following workers have been preempted: worker-3"),
    ("preempted", "2024-01-01 10:00:00 W job gpt-7 was preempted; requeue"),
    ("not_a_failure", "No jobs were preempted"),
    ("not_a_failure", "preemption handler installed, grace 60 s; a preemptible queue is used"),
    ("not_a_failure", "this partition may be preempted by higher priority jobs\nstep 3 loss 2.0"),
    ("preempted", "Received preemption signal, saving checkpoint and exiting"),
    ("preempted", "Preemption detected at step 300; saving"),
    ("preempted", 'protoPayload.methodName: "compute.instances.preempted"'),
    ("preempted", "operationType: compute.instances.preempted  status: DONE"),
    ("preempted", "E 1201 10:00:00 tpu worker 3 has been preempted"),
    ("preempted", '{"level":"warn","msg":"Pod was preempted by scheduler","reason":"Preempted"}'),
    ("preempted", "Normal  Preempted  3m  default-scheduler  Preempted by pod abc on node n1"),
    ("preempted", "Job exited: PREEMPTED"),
    ("preempted", "Task state changed to PREEMPTED"),
    ("not_a_failure", "if the instance is preempted the job will be restarted"),
    ("not_a_failure", "Checking whether the VM was preempted... no"),
)
