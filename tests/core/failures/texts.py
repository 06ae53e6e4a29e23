"""Texts of the kinds that training jobs end with, and the classes that are right for each."""

from __future__ import annotations

TEXTS: tuple[tuple[str, str], ...] = (
    (
        "gpu_ecc",
        "Nov 29 10:00:01 gpu-7 kernel: NVRM: Xid (PCI:0000:65:00): 48, pid=22, name=python, DBE (double bit error) @ FBPA 3\nNov 29 10:00:02 gpu-7 kernel: NVRM: Xid (PCI:0000:65:00): 45, pid=22, name=python, Ch 00000010",
    ),
    (
        "gpu_ecc",
        "NVRM: Xid (PCI:0000:9a:00): 94, pid=41, name=pt_main_thread, Contained: SM (0x1). RST: No, D-RST: No",
    ),
    ("gpu_ecc", "NVRM: Xid (PCI:0000:db:00): 64, Row Remapper Error: failed to remap row"),
    (
        "gpu_lost",
        "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.\nNVRM: A GPU crash dump has been created.",
    ),
    (
        "gpu_lost",
        "Unable to determine the device handle for GPU0000:C1:00.0: GPU is lost.  Reboot the system to recover this GPU",
    ),
    (
        "gpu_hardware",
        "NVRM: Xid (PCI:0000:19:00): 62, pid='<unknown>', name=<unknown>, 2027(3048) 00000000 00000000",
    ),
    (
        "gpu_hardware",
        "NVRM: Xid (PCI:0000:19:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
    ),
    (
        "gpu_lost",
        "NVRM: Xid (PCI:0000:5d:00): 119, pid=100, name=python, Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 76",
    ),
    (
        "nvlink_fault",
        "nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 22013, Fatal, Link 12 Minion Link DLREQ interrupt",
    ),
    (
        "not_a_failure",
        "nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 12028, Non-fatal, Link 12 egress non-posted PRIV error",
    ),
    (
        "nvlink_fault",
        "NVRM: Xid (PCI:0000:1b:00): 145, pid=9, name=python, RLW_REMAP_ERROR Fatal XC1 i0 Link 17",
    ),
    (
        "gpu_app_fault",
        "NVRM: Xid (PCI:0000:c6:00): 31, pid=1234, name=python, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f. Fault is of type FAULT_PDE ACCESS_TYPE_READ",
    ),
    (
        "gpu_app_fault",
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be asynchronously reported at some other API call",
    ),
    ("gpu_app_fault", "RuntimeError: CUDA error: misaligned address"),
    (
        "gpu_app_fault",
        "Memory access fault by GPU node-1 (Agent handle: 0x5582) on address 0x7f0. Reason: Page not present or supervisor privilege.",
    ),
    ("gpu_app_fault", "RuntimeError: CUDA error: unspecified launch failure"),
    ("gpu_busy", "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable"),
    (
        "cuda_driver",
        "RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver",
    ),
    ("cuda_driver", "RuntimeError: CUDA error: no kernel image is available for execution on the device"),
    ("cuda_driver", "CUDA initialization: CUDA driver version is insufficient for CUDA runtime version"),
    ("cuda_driver", "Failed to initialize NVML: Driver/library version mismatch"),
    (
        "gpu_oom",
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 63.98 GiB of which 1.1 GiB is free.",
    ),
    (
        "gpu_oom",
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 15.78 GiB total capacity; 14.2 GiB already allocated)",
    ),
    (
        "gpu_oom",
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4294967296 bytes.",
    ),
    ("host_oom", "[ 1234.567890] Out of memory: Killed process 4711 (python3) total-vm:123kB, anon-rss:99kB"),
    ("host_oom", "kernel: Memory cgroup out of memory: Killed process 99 (pt_main_thread) total-vm:1kB"),
    ("host_oom", "    State:          Terminated\n      Reason:       OOMKilled\n      Exit Code:    137"),
    ("host_oom", "12345|train|OUT_OF_MEMORY|0:125"),
    ("host_oom|unknown", "srun: error: node-3: task 2: Killed"),
    (
        "host_oom",
        "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc",
    ),
    ("host_oom", "RuntimeError: unable to mmap 1048576 bytes from file <ckpt>: Cannot allocate memory (12)"),
    (
        "shm_exhausted",
        "RuntimeError: unable to write to file </torch_1234_567_0>: No space left on device (28)",
    ),
    (
        "shm_exhausted",
        "RuntimeError: DataLoader worker (pid 99) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.",
    ),
    ("resource_limit", "OSError: [Errno 24] Too many open files: '/data/part-00017'"),
    ("resource_limit", "RuntimeError: can't start new thread"),
    (
        "resource_limit",
        "OpenBLAS blas_thread_init: pthread_create failed for thread 12 of 64: Resource temporarily unavailable",
    ),
    (
        "resource_limit",
        "RuntimeError: Too many open files. Communication with the workers is no longer possible. Please increase the limit using `ulimit -n`",
    ),
    (
        "collective_timeout",
        "[rank3]:[E1129 10:00:00.1 ProcessGroupNCCL.cpp:688] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8, OpType=BROADCAST, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600010 milliseconds before timing out.",
    ),
    (
        "collective_timeout|straggler|rendezvous_failure",
        "torch.distributed.DistStoreError: wait timeout after 300000ms, keys: /default_pg/0//cuda//0",
    ),
    (
        "collective_timeout|straggler|peer_failure",
        "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete",
    ),
    ("collective_timeout|straggler", "RuntimeError: Rank 2 failed to pass monitoredBarrier in 30000 ms"),
    ("collective_mismatch", "[Rank 0] Collective desync detected: rank 3 is at 17, others at 18"),
    (
        "peer_failure",
        "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.2]:1234",
    ),
    (
        "peer_failure",
        "torch.distributed.DistNetworkError: The client socket has failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?",
    ),
    ("peer_failure", "RuntimeError: NCCL communicator was aborted on rank 4."),
    (
        "peer_failure|rendezvous_failure",
        "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed. Connection reset by peer",
    ),
    (
        "network_fault",
        "node-1:1:2 [3] transport/net_ib.cc:98 NCCL WARN NET/IB : mlx5_3:1 Got async event : port error",
    ),
    (
        "network_fault",
        "node-1:1:2 [3] net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.1.1.1<1> with status=12 opcode=129 len=0 vendor err 129 (Recv)",
    ),
    (
        "network_fault",
        "NCCL WARN NET/OFI Request 0x7f completed with error. RC: 107. Error: 15 (Unresponsive receiver (reachable by EFA device but handshake failed))",
    ),
    (
        "network_fault",
        "misc/socket.cc:50 NCCL WARN socketStartConnect: Connect to 192.168.1.5<33333> failed : No route to host",
    ),
    ("network_fault", "bootstrap.cc:40 NCCL WARN Bootstrap : no socket interface found"),
    ("network_fault", "kernel: mlx5_core 0000:b3:00.0 ibp179s0: Link down"),
    ("rendezvous_failure", "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError"),
    (
        "rendezvous_failure",
        "torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 1/2 clients joined.",
    ),
    (
        "rendezvous_failure",
        "[W socket.cpp:697] [c10d] The IPv6 network addresses of (head-node, 29500) cannot be retrieved (gai error: -2 - Name or service not known).\n[E socket.cpp:957] [c10d] The client socket has timed out after 300s while trying to connect to (head-node, 29500).",
    ),
    (
        "port_in_use",
        "RuntimeError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: 0, code: -98, name: EADDRINUSE, message: address already in use",
    ),
    ("port_in_use", "OSError: [Errno 98] Address already in use"),
    (
        "node_failure",
        "slurmstepd: error: *** JOB 88 ON n3 CANCELLED AT 2026-11-02T10:00:00 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
    ),
    ("node_failure", "88|train|NODE_FAIL|1:0"),
    ("node_failure", "srun: error: Node failure on gpu-14"),
    ("node_failure", "Warning  NodeNotReady  node-controller  Node is not ready"),
    ("node_failure", "kernel: Kernel panic - not syncing: Fatal machine check"),
    (
        "preempted",
        "slurmstepd: error: *** STEP 5.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO PREEMPTION ***",
    ),
    ("preempted", "88|train|PREEMPTED|0:0"),
    ("preempted", "Compute Engine instance was preempted: gke-spot-1"),
    ("preempted", "EC2 spot instance interruption notice received: action terminate at 2026-01-01T00:02:00Z"),
    ("preempted", "Pod ml/train-0 preempted by pod ml/prod-1 on node n4"),
    (
        "evicted",
        "Warning  Evicted  kubelet  The node was low on resource: memory. Threshold quantity: 100Mi, available: 20Mi.",
    ),
    ("evicted", "TaintManagerEviction: Marking for deletion Pod ml/train-3"),
    ("maintenance", "Received ACPI shutdown: TERMINATE_ON_HOST_MAINTENANCE"),
    (
        "time_limit",
        "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***",
    ),
    ("time_limit", "7|train|TIMEOUT|0:0"),
    (
        "time_limit",
        "Warning  DeadlineExceeded  job-controller  Job was active longer than specified deadline",
    ),
    ("time_limit", "=>> PBS: job killed: walltime 3610 exceeded limit 3600"),
    (
        "user_cancelled",
        '^CTraceback (most recent call last):\n  File "train.py", line 3, in <module>\nKeyboardInterrupt',
    ),
    ("user_cancelled", "88|train|CANCELLED by 1001|0:0"),
    (
        "user_cancelled|external_stop",
        "slurmstepd: error: *** JOB 191 ON node-a CANCELLED AT 2021-10-27T19:35:36 ***",
    ),
    (
        "external_stop|unknown",
        "Process 12 received SIGTERM\ntorch.distributed.elastic.multiprocessing.api.SignalException: Process 12 got signal: 15",
    ),
    ("hang", "2026-01-01 10:00:00 WARNING no progress for 1800 s"),
    ("dataloader_failure", "RuntimeError: DataLoader worker (pid(s) 1, 2) exited unexpectedly"),
    (
        "dataloader_failure|native_crash",
        "RuntimeError: DataLoader worker (pid 7) is killed by signal: Segmentation fault.",
    ),
    ("data_corrupt", "PIL.UnidentifiedImageError: cannot identify image file <_io.BytesIO object at 0x7f>"),
    ("data_corrupt", "OSError: image file is truncated (4 bytes not processed)"),
    (
        "data_corrupt",
        "pyarrow.lib.ArrowInvalid: Parquet magic bytes not found in footer. Either the file is corrupted or this is not a parquet file.",
    ),
    ("storage_io", "OSError: [Errno 116] Stale file handle: '/mnt/nfs/ckpt'"),
    ("storage_io", "OSError: [Errno 5] Input/output error"),
    ("storage_io", "OSError: [Errno 30] Read-only file system: '/scratch/out'"),
    ("storage_full", "OSError: [Errno 122] Disk quota exceeded"),
    (
        "storage_full",
        "RuntimeError: [enforce fail at inline_container.cc:858] . PytorchStreamWriter failed writing file data/3: file write failed\nOSError: [Errno 28] No space left on device",
    ),
    (
        "object_store",
        "google.api_core.exceptions.TooManyRequests: 429 GET https://storage.googleapis.com/b/o: rateLimitExceeded",
    ),
    (
        "object_store",
        "botocore.exceptions.ClientError: An error occurred (ExpiredToken) when calling the PutObject operation: The provided token has expired.",
    ),
    (
        "object_store",
        "botocore.exceptions.EndpointConnectionError: Could not connect to the endpoint URL: https://s3.local/x",
    ),
    (
        "object_store",
        "azure.core.exceptions.HttpResponseError: The server is busy. ErrorCode:ServerBusy blob 503",
    ),
    (
        "checkpoint_save_failed",
        "torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([0])\nRuntimeError: Parent directory /ckpt/step_3 does not exist. failed to save checkpoint",
    ),
    ("checkpoint_corrupt", "_pickle.UnpicklingError: invalid load key, '\\x00'."),
    ("checkpoint_corrupt", "EOFError: Ran out of input"),
    (
        "checkpoint_corrupt",
        "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer",
    ),
    (
        "checkpoint_incompatible",
        "RuntimeError: Error(s) in loading state_dict for DLRM:\n\tsize mismatch for over.weight: copying a param with shape torch.Size([1, 2])",
    ),
    (
        "checkpoint_incompatible",
        "ValueError: loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
    ),
    ("checkpoint_incompatible", 'RuntimeError: Unexpected key(s) in state_dict: "module.x"'),
    ("nan_loss", "AssertionError: Loss is nan, stopping training"),
    ("nan_loss", "Loss is nan, stopping training"),
    (
        "nan_loss",
        "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
    ),
    ("nan_loss", "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding."),
    (
        "nan_loss",
        "RuntimeError: found NaN in local grad norm in backward pass before data-parallel communication collective. Device: 3",
    ),
    ("nan_loss", "ValueError: gradient norm is not finite at step 12"),
    (
        "compile_failure",
        "torch._inductor.exc.InductorError: CppCompileError: C++ compile error\n\nCommand:\ng++ /tmp/x.cpp -o x.so\n\nOutput:\nfatal error: Python.h: No such file or directory",
    ),
    (
        "compile_failure",
        "torch._inductor.exc.InvalidCxxCompiler: No working C++ compiler found in torch._inductor.config.cpp.cxx",
    ),
    ("compile_failure", "triton.compiler.errors.CompilationError: at 12:4: tl.dot"),
    (
        "compile_failure",
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 262144, Hardware limit: 232448.",
    ),
    ("compile_failure", "ptxas fatal   : Value 'sm_103a' is not defined for option 'gpu-name'"),
    ("compile_failure", "RuntimeError: Error building extension 'fused_adam'"),
    (
        "compile_failure",
        "RuntimeError: Failed to find C compiler. Please specify via CC environment variable.",
    ),
    ("environment_error", "ModuleNotFoundError: No module named 'torchrec'"),
    (
        "environment_error",
        "OSError: libcudart.so.12: cannot open shared object file: No such file or directory",
    ),
    (
        "environment_error",
        "ImportError: /lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.32' not found",
    ),
    ("environment_error", "Warning  Failed  kubelet  Failed to pull image: ErrImagePull"),
    ("environment_error", "python: can't open file '/app/trian.py': [Errno 2] No such file or directory"),
    ("environment_error", "bash: line 1: torchrun: command not found"),
    ("config_error", "train.py: error: unrecognized arguments: --foo"),
    (
        "config_error",
        "torchrec.distributed.planner.types.PlannerError: Unable to find a plan for this model.",
    ),
    ("config_error", "hydra.errors.ConfigCompositionException: error in config"),
    ("config_error", "omegaconf.errors.ConfigAttributeError: Key 'lrr' is not in struct"),
    ("config_error", "RuntimeError: CUDA error: invalid device ordinal"),
    ("config_error|user_code", "ValueError: batch size 100 must be divisible by world size 8"),
    (
        "user_code",
        '[rank2]: Traceback (most recent call last):\n[rank2]:   File "train.py", line 3\n[rank2]: ZeroDivisionError: division by zero',
    ),
    (
        "user_code",
        'Traceback (most recent call last):\n  File "train.py", line 99, in <module>\n    main()\nIndexError: index 12 is out of bounds for dimension 0 with size 10',
    ),
    ("user_code", "AssertionError"),
    (
        "native_crash",
        "Fatal Python error: Segmentation fault\n\nCurrent thread 0x7f (most recent call first):",
    ),
    ("native_crash|unknown", "srun: error: n1: task 3: Segmentation fault (core dumped)"),
    ("native_crash", "double free or corruption (!prev)\nAborted (core dumped)"),
    ("native_crash", "E1129 failed (exitcode: -11) local_rank: 0 (pid: 33) of binary: python"),
    (
        "service_error",
        'grpc._channel._InactiveRpcError: <_InactiveRpcError of RPC that terminated with: status = StatusCode.UNAVAILABLE details = "failed to connect to all addresses"',
    ),
    (
        "service_error",
        "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='hub', port=443): Max retries exceeded with url: /api",
    ),
    ("service_error", "wandb.errors.CommError: Error communicating with wandb process"),
    (
        "not_a_failure",
        "EmbeddingBoundsCheck (VBE false): (at least one) Out of bounds access for batch: 0, table: 1, bag element: 5, idx: 100, num_rows: 50. Setting idx to zero.",
    ),
    (
        "not_a_failure",
        "W0306 14:40:15.99 1719 torch/_dynamo/convert_frame.py:906] [0/8] torch._dynamo hit config.recompile_limit (8)",
    ),
    ("not_a_failure", "step 10 loss 0.3\nstep 20 loss 0.2\nTraining finished."),
    ("not_a_failure", "WARNING: grad norm is nan, skipping update at step 12\nstep 13 loss 2.2"),
    ("not_a_failure", "WARNING:root:S3 request failed with 503 SlowDown, retrying in 2 s"),
    (
        "not_a_failure",
        "OMP: Info: KMP_AFFINITY\nW1129 [W socket.cpp:601] [c10d] The client socket has failed to connect to [localhost]:29500 (errno: 99 - Cannot assign requested address).",
    ),
    (
        "not_a_failure",
        "[W1129 1:2:3.4 socket.cpp:601] [c10d] The client socket has failed to connect to [head]:29500 (errno: 111 - Connection refused).\nstep 1 loss 3",
    ),
    (
        "not_a_failure",
        "UserWarning: Detected kernel version 3.10.0, which is below the recommended minimum of 5.5.0; this can cause the process to hang.",
    ),
    ("gpu_ecc", "NVRM: Xid (PCI:0000:3b:00): 92, pid=1, High single-bit ECC error rate"),
    (
        "gpu_ecc",
        "2026-03-01T04:11:09 gpu17 kernel: [88123.4] NVRM: Xid (PCI:0000:87:00): 140, pid=0, name=, Unrecovered ECC error detected",
    ),
    (
        "gpu_ecc",
        "GPU 5: Volatile Uncorrectable ECC errors: 12 ; RuntimeError: CUDA error: uncorrectable ECC error encountered",
    ),
    (
        "gpu_lost",
        "nvidia-smi: Unable to determine the device handle for GPU 0000:06:00.0: GPU is lost. Reboot the system to recover this GPU\nRuntimeError: CUDA error: unknown error",
    ),
    ("gpu_hardware|gpu_lost", "NVRM: Xid (PCI:0000:4e:00): 120, pid=912, GSP task timeout @ pc:0x"),
    ("gpu_hardware", "NVRM: Xid (PCI:0000:4e:00): 110, pid='<unknown>', name=<unknown>, Security Fault"),
    ("nvlink_fault", "nvidia-nvswitch2: SXid (PCI:0000:0a:00.0): 20001, Fatal, Link 45 TX Replay Error"),
    (
        "gpu_app_fault",
        "torch.AcceleratorError: CUDA error: device-side assert triggered\nSearch for `cudaErrorAssert' in the docs",
    ),
    (
        "gpu_app_fault",
        "/pytorch/aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [11,0,0] Assertion `t >= 0 && t < n_classes` failed.",
    ),
    ("gpu_app_fault", "HIP error: an illegal memory access was encountered"),
    (
        "gpu_app_fault",
        "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED\nCUDA error: an illegal memory access was encountered",
    ),
    ("gpu_oom", "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    (
        "gpu_oom",
        "[rank0]: torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory) Currently allocated : 39 GiB Requested: 2 GiB",
    ),
    ("gpu_busy", "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable"),
    (
        "cuda_driver",
        "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display driver / cuda driver combination",
    ),
    ("cuda_driver", "RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain."),
    ("cuda_driver|environment_error|config_error", "AssertionError: Torch not compiled with CUDA enabled"),
    (
        "host_oom",
        "Nov 29 10:00:01 n3 kernel: python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
    ),
    ("host_oom", "Last State: Terminated\n  Reason: OOMKilled\n  Exit Code: 137"),
    ("host_oom", "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."),
    (
        "host_oom",
        "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 12.0 GiB for an array with shape (1610612736,) and data type float64",
    ),
    ("host_oom", "OSError: [Errno 12] Cannot allocate memory"),
    ("shm_exhausted", "OSError: [Errno 28] No space left on device: '/dev/shm/torch_881_12'"),
    (
        "shm_exhausted",
        "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-9aKj (size 9637888), error: No space left on device (28)",
    ),
    ("resource_limit", "BlockingIOError: [Errno 11] Resource temporarily unavailable"),
    ("resource_limit", "OSError: [Errno 24] Too many open files"),
    (
        "resource_limit|network_fault",
        "libibverbs: Warning: RLIMIT_MEMLOCK is 65536 bytes.\nNCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory",
    ),
    (
        "collective_timeout",
        "[rank4]:[E1201 09:00:00.1 ProcessGroupNCCL.cpp:629] [Rank 4] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=_REDUCE_SCATTER_BASE, Timeout(ms)=1800000) ran for 1800090 milliseconds before timing out.\n[rank4]: torch.distributed.DistBackendError",
    ),
    (
        "collective_timeout|straggler",
        "RuntimeError: [Rank 0]: Ranks 3 failed to pass monitoredBarrier in 1800000 ms",
    ),
    (
        "collective_mismatch",
        "RuntimeError: Detected mismatch between collectives on ranks. Rank 2 is running collective: CollectiveFingerPrint(SequenceNumber=9, OpType=BROADCAST",
    ),
    (
        "peer_failure",
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2027, remote process exited or there was a network error, NCCL version 2.21.5\nncclRemoteError",
    ),
    ("peer_failure|collective_timeout", "RuntimeError: Application timeout caused pair closure"),
    ("peer_failure|rendezvous_failure", "[W1129 c10d] sendBytes failed on SocketImpl(fd=4): Broken pipe"),
    ("network_fault", "NCCL WARN NET/IB : mlx5_2:1 Got async error event: port error"),
    (
        "network_fault",
        "transport/net_ib.cc:2210 NCCL WARN NET/IB: Got completion from peer 10.0.1.2<40000> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) reqSize=0 vendor_err=129",
    ),
    (
        "rendezvous_failure",
        "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (10.2.0.4, 29400).",
    ),
    (
        "rendezvous_failure",
        "RuntimeError: Timed out initializing process group in store based barrier on rank: 0, for key: store_based_barrier_key:1 (world_size=4, worker_count=3, timeout=0:30:00)",
    ),
    (
        "port_in_use",
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
    ),
    ("port_in_use", "RuntimeError: [enforce fail at socket.cpp] bind: Address already in use"),
    ("node_failure", "srun: error: Node failure on node-17\nsrun: error: Node node-17 has become DOWN"),
    (
        "node_failure",
        "The node: 9f with IP 10.0.0.9 has been marked dead because the detector has missed too many heartbeats from it.",
    ),
    (
        "node_failure",
        "Status:  Failed\nReason:  NodeLost\nMessage: Node gpu-3 which was running pod train-0 is unresponsive",
    ),
    (
        "preempted",
        "slurmstepd: error: *** STEP 99.0 ON c7 CANCELLED AT 2026-02-01T00:00:00 DUE TO PREEMPTION ***",
    ),
    ("preempted", "Reason: Preempted\nMessage: Preempted in order to admit critical pod"),
    ("preempted", "AWS spot: instance-action terminate notice; exiting"),
    (
        "evicted",
        "Message: Pod was rejected/evicted: The node had condition: [MemoryPressure].  Reason: Evicted",
    ),
    (
        "evicted|host_oom",
        "The node was low on resource: memory. Container trainer was using 61Gi, which exceeds its request of 32Gi.",
    ),
    ("maintenance", "scontrol: Reason=Not responding, DrainReason=maintenance; node state DRAINED"),
    (
        "time_limit",
        "slurmstepd: error: *** JOB 5 ON n CANCELLED AT 2026-01-01T10:00:00 DUE TO TIME LIMIT ***\nsrun: Job step aborted",
    ),
    ("time_limit", "TERM_RUNLIMIT: job killed after reaching LSF run time limit."),
    (
        "user_cancelled",
        "W1129 torch/distributed/elastic/agent/server/api.py:704] Received Signals.SIGINT death signal, shutting down workers\nKeyboardInterrupt",
    ),
    (
        "external_stop",
        "W1129 10:00:00.1 12 torch/distributed/elastic/agent/server/api.py:719] Received Signals.SIGTERM death signal, shutting down workers",
    ),
    (
        "dataloader_failure",
        "RuntimeError: DataLoader worker (pid 4242) exited unexpectedly with exit code 1. Details are lost due to multiprocessing.",
    ),
    ("data_corrupt", "webdataset: tarfile.ReadError: unexpected end of data in shard-0012.tar"),
    ("data_corrupt", "zlib.error: Error -3 while decompressing data: incorrect header check"),
    ("data_corrupt", "libpng error: IDAT: CRC error\nOSError: broken data stream when reading image file"),
    ("storage_io", "OSError: [Errno 107] Transport endpoint is not connected: '/mnt/fuse/data'"),
    (
        "storage_io",
        "LustreError: 11-0: scratch-MDT0000-mdc: operation ldlm_enqueue to node failed: rc = -107",
    ),
    ("storage_full", "OSError: [Errno 28] No space left on device"),
    (
        "storage_full|checkpoint_save_failed",
        "RuntimeError: [enforce fail at inline_container.cc:603] . unexpected pos 5568 vs 5462",
    ),
    (
        "object_store",
        "google.api_core.exceptions.ServiceUnavailable: 503 PUT https://storage.googleapis.com/upload/storage/v1/b/ckpt: backendError",
    ),
    ("object_store", "botocore.exceptions.NoCredentialsError: Unable to locate credentials"),
    ("object_store", "s3fs: PermissionError: Access Denied (403 Forbidden) on s3://bucket/ckpt"),
    (
        "checkpoint_save_failed",
        "torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([1])\nTraceback (most recent call last): (RANK 1)\nPermissionError: [Errno 13] Permission denied: '/ckpt/step_5/__1_0.distcp'",
    ),
    (
        "checkpoint_corrupt",
        "FileNotFoundError: [Errno 2] No such file or directory: '/ckpt/step_100/.metadata'",
    ),
    (
        "checkpoint_corrupt",
        "RuntimeError: unexpected EOF, expected 81920 more bytes. The file might be corrupted.",
    ),
    (
        "checkpoint_incompatible",
        'RuntimeError: Error(s) in loading state_dict for GPT: Missing key(s) in state_dict: "head.bias".',
    ),
    (
        "checkpoint_incompatible",
        "KeyError: 'optimizer.state.table_3.momentum1' not found in checkpoint state_dict",
    ),
    ("nan_loss", "ValueError: NaN detected in loss at iteration 200, terminating"),
    (
        "nan_loss",
        "lightning.pytorch.callbacks: Monitored metric train_loss = nan is not finite. Previous best value was 0.2. Signaling Trainer to stop.",
    ),
    ("nan_loss", "RuntimeError: Function 'MulBackward0' returned nan values in its 0th output."),
    ("compile_failure", "torch._dynamo.exc.Unsupported: Data-dependent branching"),
    ("compile_failure", "torch._inductor.exc.InductorError: LoweringException: AssertionError"),
    ("compile_failure", "RuntimeError: PassManager::run failed"),
    ("environment_error", "ImportError: cannot import name 'EmbeddingBagCollection' from 'torchrec'"),
    ("environment_error", "OSError: libnccl.so.2: cannot open shared object file: No such file or directory"),
    (
        "environment_error",
        'Failed to pull image "repo/train:1": rpc error: code = NotFound\nWarning Failed Error: ErrImagePull',
    ),
    (
        "config_error",
        "ValueError: The number of heads (12) must be divisible by the tensor parallel size (8)",
    ),
    ("config_error", "argparse.ArgumentError: argument --lr: invalid float value: 'abc'"),
    ("config_error", "jsonargparse: error: Parser key \"model.foo\": Expected a <class 'int'>"),
    ("user_code", "[rank1]: AttributeError: 'NoneType' object has no attribute 'shape'"),
    ("user_code", "RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x10 and 20x5)"),
    (
        "user_code|collective_mismatch",
        "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one.",
    ),
    ("native_crash", "srun: error: n1: task 3: Segmentation fault"),
    ("native_crash", "*** Error in `python': corrupted size vs. prev_size: 0x7f ***\nAborted (core dumped)"),
    (
        "service_error",
        "wandb: ERROR Error while calling W&B API: internal server error\nwandb.errors.CommError: Run initialization has timed out after 90.0 sec.",
    ),
    ("service_error", "huggingface_hub.errors.HfHubHTTPError: 504 Server Error: Gateway Time-out for url"),
    (
        "service_error",
        "mlflow.exceptions.MlflowException: API request to http://mlflow:5000 failed with exception HTTPConnectionPool: Max retries exceeded",
    ),
    (
        "not_a_failure",
        "[W1129 ProcessGroupNCCL.cpp:4115] Using device 0 under current context since device_id not specified",
    ),
    (
        "not_a_failure",
        "/usr/lib/python3/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There appear to be 12 leaked semaphore objects to clean up at shutdown",
    ),
    (
        "not_a_failure",
        "wandb: WARNING Retry attempt failed: 503 Service Unavailable, will retry\nstep 100 loss 0.2",
    ),
    (
        "not_a_failure",
        "NCCL INFO comm 0x55 rank 0 nranks 8 - Abort COMPLETE\nEpoch 3 done, training complete",
    ),
    ("not_a_failure", "INFO checkpoint saved in 12 s; 0 errors, 0 failed shards"),
    (
        "not_a_failure",
        "WARNING: Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0",
    ),
    ("unknown", "srun: error: n4: task 7: Exited with exit code 1"),
    ("hang|unknown", "2026-01-01 10:00:00 step 10\nWARNING: rank 3 has made no progress for 900 s"),
)
