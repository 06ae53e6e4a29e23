"""Texts of collectives, of the network below them, and of the meeting of the processes."""

from __future__ import annotations

from ett_core.failures.rule import CASCADE, TEARDOWN, Rule

NETWORK = (
    Rule(
        failure_class="rendezvous_failure",
        needles=("store based barrier", "store_based_barrier_key"),
        pattern=r"timed out initializing process group in store based barrier|store_based_barrier_key.{0,80}worker_count",
        example="RuntimeError: Timed out initializing process group in store based barrier on rank: 0 (worker_count=3)",
        counter_example="Rank 0: Completed store-based barrier for key:store_based_barrier_key:1 with 4 nodes.",
    ),
    Rule(
        failure_class="shm_exhausted",
        needles=("no space left on device", "shared memory segment", "/dev/shm"),
        pattern=r"(?:shm\.h|/dev/shm|nccl-shm|posix_fallocate|shared memory segment).{0,160}no space left"
        r"|no space left on device.{0,80}(?:/dev/shm|nccl-shm|/torch_|/psm_|/sem\.)",
        example="job:97:183 [0] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device",
        counter_example="OSError: [Errno 28] No space left on device: '/data/ckpt/step_9'",
    ),
    Rule(
        failure_class="environment_error",
        needles=("shm_open failed", "/dev/shm"),
        pattern=r"shm_open failed : permission denied|permission denied.{0,40}/dev/shm",
        example="include/shm.h:27 NCCL WARN Call to shm_open failed : Permission denied",
        counter_example="include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device",
    ),
    Rule(
        failure_class="shm_exhausted",
        needles=("shm.h", "posix_fallocate", "shared memory segment", "/dev/shm", "nccl-shm"),
        pattern=r"(?:shm\.h|/dev/shm|nccl-shm|posix_fallocate|shared memory segment).{0,160}(?:failed|error)"
        r"|error while creating shared memory",
        example="NCCL WARN Error while creating shared memory segment nccl-shm-recv-b7948-0-3-0 (size 4460544)",
        counter_example="NCCL INFO Allocated 9637892 bytes of shared memory in /dev/shm/nccl-CmU6vI",
    ),
    Rule(
        failure_class="network_fault",
        needles=("got completion", "net/ib", "net/ofi", "ibv_", "efa", "mlx5"),
        pattern=r"got completion.{0,80}(?:error|status=?) ?(?:12|10|11|13)\b|net/ib ?:.{0,60}(?:got async event(?! : (?:client re-?registration|port active|\w+ change|comm established))|port error)"
        r"|net/ofi.{0,120}(?:completion with error|request .{0,20}completed with error|unresponsive receiver)"
        r"|ibv_(?:modify_qp|poll_cq|reg_mr\w*) failed|(?<![a-z])efa.{0,60}(?:unreachable|unresponsive|timed out)"
        r"|mlx5.{0,80}(?:link down|port.{0,12}down)",
        example="NET/IB : Got completion from peer 10.0.0.5<39138> with error 12, opcode 0, len 0, vendor err 129",
        counter_example="NCCL INFO NET/IB : Using [0]mlx5_0:1/IB ; OOB eth0:10.0.0.4<0>",
    ),
    Rule(
        failure_class="network_fault",
        needles=(
            "link is down",
            "link down",
            "link flap",
            "carrier lost",
        ),
        pattern=r"(?:ib\d|mlx5|bond|eth|ens|eno|infiniband|nic|net).{0,60}(?:link (?:is )?down|link flap|carrier lost)",
        example="node-b kernel: mlx5_core 0000:1a:00.0 ens3: Link down",
        counter_example="sidebar: download link is down below",
    ),
    Rule(
        failure_class="network_fault",
        needles=("no route to host", "network is unreachable"),
        example="RuntimeError: [../gloo/transport/tcp/pair.cc:799] connect [10.0.0.3]:4711: No route to host",
        counter_example="the host took another route",
    ),
    Rule(
        failure_class="network_fault",
        needles=(
            "connectfullmesh failed",
            "no socket interface found",
            "no interface found",
            "unable to find interface",
            "unable to resolve hostname to a (local) address",
            "socket_ifname",
            "socketstartconnect",
            "socketpollconnect",
            "nccl warn connect to",
        ),
        pattern=r"(?:socket(?:Start|Poll)Connect: |NCCL WARN )connect to .{0,80}(?:failed|returned) ?:? ?(?:no route|network|connection timed|cannot|invalid)"
        r"|(?:socket(?:Start|Poll)Connect: |NCCL WARN )connect to (?:fe80|169\.254).{0,80}(?:failed|returned)"
        r"|gloo connectFullMesh failed|no (?:usable )?(?:socket )?interface found|unable to find interface"
        r"|unable to resolve hostname to a \(local\) address|socket_ifname.{0,60}(?:not found|no such)",
        example="RuntimeError: Gloo connectFullMesh failed with [../gloo/transport/tcp/pair.cc:144] no error",
        counter_example="NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth0",
    ),
    Rule(
        failure_class="collective_mismatch",
        needles=(
            "mismatch between collectives",
            "collectives differ",
            "desync",
            "collective mismatch",
            "mismatched collective",
            "opcount",
        ),
        pattern=r"detected mismatch between collectives|collectives differ|desync (?:detected|report)|collective desync|collective(?:s)?"
        r" mismatch|mismatched collective|truncated? message.{0,60}opcount",
        example="RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: ALLREDUCE",
        counter_example="[rank0]: desync debug is switched off",
        certain=True,
    ),
    Rule(
        failure_class="collective_mismatch",
        needles=("message truncated", "last enqueued nccl work"),
        pattern=r"message truncated ?: received \d+ bytes instead of \d+",
        example="NCCL WARN Message truncated : received 1024 bytes instead of 256",
        counter_example="[Rank 3] last enqueued NCCL work: 35301, last completed NCCL work: 35300.",
    ),
    Rule(
        failure_class="port_in_use",
        needles=("address already in use", "eaddrinuse", "errno: 98", "errno 98"),
        example="[c10d] The server socket has failed to bind to 0.0.0.0:47531 (errno: 98 - Address already in use).",
        counter_example="the address is used already in the header",
        at_warning=True,
        certain=True,
    ),
    Rule(
        failure_class="rendezvous_failure",
        needles=(
            "client socket has timed out",
            "client socket has failed to connect",
            "rendezvoustimeouterror",
            "rendezvousconnectionerror",
            "timed out waiting for clients",
            "the connection to the c10d store has failed",
            "timed out after",
            "rendezvousstateerror",
            "original timeout was",
        ),
        pattern=r"client socket has (?:timed out|failed to connect)|RendezvousTimeoutError|timed out waiting for clients"
        r"|RendezvousConnectionError: the connection|connection to the c10d store has failed|RendezvousStateError"
        r"|timed out after \d+ ?m?s(?:econds)? waiting for (?:clients|workers)"
        r"|connect\(\) timed out\. original timeout",
        example="[E socket.cpp:793] [c10d] The client socket has timed out after 60s while trying to connect to (10.0.0.1, 2222).",
        counter_example="[W socket.cpp:601] [c10d] The client socket has failed to connect to [localhost]:29500 (errno: 99), retrying",
    ),
    Rule(
        failure_class="straggler",
        needles=("straggler",),
        pattern=r"straggler (?:detected|found|identified)|detected (?:a )?straggler",
        example="straggler detected: rank 12 is 3.1 times slower than the median",
        counter_example="straggler detection is switched on",
    ),
    Rule(
        failure_class="collective_timeout",
        role=CASCADE,
        needles=(
            "collective operation timeout",
            "timeout at nccl work",
            "timeout waiting for key",
            "timed out waiting for key",
            "wait timeout after",
            "watchdog got stuck",
            "watchdog caught collective",
            "collective operation time-out",
            "timed out waiting",
            "monitoredbarrier",
            "application timeout caused pair closure",
            "recv operation to complete",
            "send operation to complete",
            "socket timeout",
        ),
        pattern=r"collective operation time-?out|watchdog caught collective\b|timeout at nccl work: \d|tim(?:eout|ed out) waiting for key|wait timeout after \d+ ?ms"
        r"|watchdog got stuck|application timeout caused pair closure|timed out in monitoredBarrier|failed to pass monitoredBarrier|monitoredBarrier.{0,120}(?:failed|did not|timed? ?out|received errors)"
        r"|timed out waiting \d+ ?ms for (?:recv|send) operation|store.{0,40}socket timeout",
        example="[Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, Timeout(ms)=600000)",
        counter_example="barrier passed after waiting for key default_pg/0/0",
    ),
    Rule(
        failure_class="peer_failure",
        role=CASCADE,
        needles=("rendezvousclosederror", "rendezvousgracefulexiterror"),
        example="torch.distributed.elastic.rendezvous.api.RendezvousClosedError",
        counter_example="the rendezvous is closed at the end",
        certain=True,
    ),
    Rule(
        failure_class="peer_failure",
        role=CASCADE,
        at_warning=True,
        needles=(
            "failed to send a keep-alive heartbeat",
            "has failed to shutdown the rendezvous",
            "remote server shutdown or crash",
            "stopped sending heartbeats",
            "no heartbeat for ",
            "no heartbeat from ",
            "lack of heartbeat",
            "horovod has been shut down",
        ),
        example="The node 'node-a_187281_0' has failed to send a keep-alive heartbeat to the rendezvous 'none'",
        counter_example="the node sent a keep-alive heartbeat",
    ),
    Rule(
        failure_class="peer_failure",
        role=CASCADE,
        at_warning=True,
        needles=(
            "connection closed by",
            "connection reset by peer",
            "broken pipe",
            "connection was likely closed",
            "remote process exited",
            "ncclremoteerror",
            "peer closed",
            "connection closed by remote peer",
            "failed to recv, got 0 bytes",
            "connection refused",
            "socket closed",
            "socketprogress",
            "call to recv",
            "software caused connection abort",
            "transport endpoint is not connected",
            "abort received",
            "process group has been aborted",
            "communicator was aborted",
        ),
        pattern=r"connection closed by (?:local|remote|peer|rank)|connection reset by (?:peer|remote)|broken pipe"
        r"|connection was likely closed|remote process exited|ncclRemoteError|got 0 bytes|peer closed"
        r"|(?:nccl|gloo|c10d|tcpstore|store|socket).{0,160}(?:connection refused|socket closed|connection abort)"
        r"|call to (?:recv|send) .{0,60}failed|endpoint is not connected|communicator was aborted|group has been aborted",
        example="NCCL INFO [Service thread] Connection closed by localRank 2",
        counter_example="SSH: connection closed by user request",
    ),
    Rule(
        failure_class="peer_failure",
        role=CASCADE,
        needles=(
            "nccl error",
            "distbackenderror",
            "ncclunhandledcudaerror",
            "ncclinternalerror",
            "ncclsystemerror",
            "unhandled system error",
            "unhandled cuda error",
            "ncclinvalidusage",
        ),
        pattern=r"nccl error|DistBackendError|nccl(?:UnhandledCuda|Internal|System)Error|unhandled (?:system|cuda) error",
        example="torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1275, internal error",
        counter_example="NCCL INFO no errors so far",
        weak=True,
    ),
    Rule(
        failure_class="peer_failure",
        role=TEARDOWN,
        needles=(
            "taking the entire process down",
            "some nccl operations have failed or timed out",
            "process group watchdog thread terminated",
            "destroy_process_group",
            "should dump",
        ),
        pattern=r"taking the entire process down|nccl operations have failed|watchdog thread terminated"
        r"|destroy_process_group\(\) was not called|should dump",
        example="[Rank 1] To avoid data inconsistency, we are taking the entire process down.",
        counter_example="the lift is taking the entire crew down",
    ),
    Rule(
        failure_class="peer_failure",
        role=CASCADE,
        needles=("command terminated with exit code",),
        pattern=r"(?:^|[\]:] ?|Z )command terminated with exit code [1-9]",
        example="command terminated with exit code 137",
        counter_example="command terminated with exit code 0",
        weak=True,
    ),
)
