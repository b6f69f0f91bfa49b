"""What the agent hands to our Python files as `agent` (MakeTorchFunctions in torch_functions.cc).

loader.py gives each file `agent`, and `load(name)`, which returns another of these files as a module. No
function raises. Domains and names are numbers of texts; 0: there was no room. A function that answers
yes or no returns 1 or 0.
"""
from typing import Any, Callable, Dict, Optional, Union

# The process
def start() -> int: ...  # 1: the agent runs here, and records
def config() -> Dict[str, Union[int, str]]: ...  # what start() read of the environment, see torch_config.cc
def refresh_rank() -> None: ...
def tell_rank(rank: int, world_size: int) -> None: ...
def capturing() -> int: ...  # 1: what is recorded now is kept
def note(text: str) -> None: ...  # what this process lacks and why, for the trace and the log
def contained(text: str) -> None: ...  # an exception of ours was stopped; counted

# Texts
def domain(text: str) -> int: ...
def name(text: str) -> int: ...

# Modules
def set_module_domain(domain: int) -> None: ...
def enter(module: Any, name: int) -> None: ...  # its forward begins on this thread
def exit(module: Any) -> int: ...  # 1: it was a root's
def depth() -> int: ...  # how many modules this thread is inside of
def module_call(
    cls: type, original: Callable, first_seen: Callable[[Any], None], root_done: Callable[[Any], None]
) -> Optional[Callable]: ...  # a new __call__ of the class; None: not in this Python
def step_call(original: Callable) -> Optional[Any]: ...  # a method of Lightning's Strategy; None: not in this Python
def watch_roots(begins: Optional[Callable[[Any], None]]) -> None: ...  # called with a root that is about to run
def root_begins(module: Any) -> None: ...  # calls it, where this is a root and is recorded
def backward_call(original: Callable, domain: int, name: int) -> Optional[Callable]: ...  # a range around it
def name_module(module: int, name: int) -> None: ...  # module: its id(); name 0: not recorded
def forget_module(module: int) -> None: ...

# Steps
def on_steps(before: Callable[[Any], None], after: Callable[[Any], None]) -> int: ...  # 1: the next two work here
def before_step(optimizer: Any, *others: Any) -> None: ...  # hooks of torch.optim; call what on_steps() was given
def after_step(optimizer: Any, *others: Any) -> None: ...
def last_optimizer(optimizer: int) -> None: ...  # id() of the one that ends iterations
def begin_steps(domain: int, name: int, phases: int, optimizer: int) -> None: ...  # domains and names of ranges
def open_step(number: int) -> None: ...
def close_step() -> int: ...  # its number
def step_number() -> int: ...  # of the one that runs
# Until this step begins, either dictionary has another size or CUDA is there, nobody is called.
def plain_steps(until: int, modules: dict, groups: Optional[dict], cuda: dict) -> None: ...
def look_at_next_step() -> None: ...  # it is not a plain one
def wake_by(wake: Optional[Callable[[], None]]) -> int: ...  # called once something is recorded; 1: it will be
def ends_step() -> int: ...  # 1: a forward ran since the last call
def skipped_steps() -> int: ...  # that nobody was told of since the last call

# Ranges and marks
def push(domain: int, name: int, payload: int = ...) -> None: ...  # a range of this thread
def pop(domain: int) -> None: ...
def open(domain: int, name: int, payload: int) -> int: ...  # a range that another thread may close
def close(range: int) -> None: ...
def mark(domain: int, name: int, text: bytes) -> None: ...  # at most 60,000 bytes are kept
def now() -> int: ...  # ticks of the host clock
def gap(start: int, end: int, text: str) -> None: ...  # ticks in which another profiler was on

# Memory
def watch_memory(domain: int) -> int: ...  # 1: the CPU allocator is watched; domain 0: no longer
def watch_out_of_memory(domain: int, name: int) -> int: ...  # 1: failed allocations of the CPU are recorded

# Operators of this thread
def probe_operators(
    x: int, weight: int, double: int, long: int, bfloat16: int, six_sizes: int
) -> int: ...  # tensors' _cdata, see LayoutProbe; 1: run the operators, then call the next two
def probed_tensors(
    output: int, other_output: int, tensor: int, storage: int, data: int,
    borrowed: int, borrowed_storage: int, borrowed_data: int
) -> int: ...  # see ProbedTensors
def probed_operators(sequence: int, next_sequence: int) -> int: ...  # 1: start_operators() works here
def probed_values(
    far_view: int, farther_view: int, turned: int, on_meta: int
) -> int: ...  # tensors' _cdata, see ValueProbe
# tensors: 0, 1 or 2, proto::TensorDetail; 1: it is with these tensors
def start_operators(domain: int, signatures: int, tensors: int) -> int: ...
def operator_names() -> str: ...  # "name\noverload\0" for each with values since the last call
def values_not_found() -> str: ...  # what values lack in this PyTorch; "": nothing
def stop_operators() -> None: ...
def start_stacks(domain: int, stacks: int, prefixes: str) -> int: ...  # prefixes of files, one a line; 1: started
def stop_stacks() -> int: ...  # how many were not taken

# Labels of record_function
def label_call(cls: type, original: Callable, ends: int) -> Optional[Callable]: ...  # a method; None: as module_call
def watch_labels() -> None: ...  # by a callback from now on, where this PyTorch allows it
def record_labels(domain: int) -> int: ...  # those open now on this thread too; 0: none are seen

# Process groups
def watch_gloo(domain: int) -> int: ...  # 1: its collectives are recorded from now on
def watch_gloo_groups() -> int: ...  # 1: its contexts are remembered from now on
def gloo_contexts() -> str: ...  # "number rank size\n" for each context made since the last call, in order

# proto/framework_marks.h: kStepDomain is STEP_DOMAIN. A row's fields have a blank between two.
STEP_DOMAIN: str
MODULE_DOMAIN: str
PHASE_DOMAIN: str
OPERATOR_DOMAIN: str
COMM_DOMAIN: str
MEMORY_DOMAIN: str
LABEL_DOMAIN: str
STEP_RANGE: str
OPTIMIZER_PHASE: str
BACKWARD_PHASE: str
DATA_PHASE: str
COLLECTION_PHASE: str
CHECKPOINT_PHASE: str
WINDOW_MARK: str
TENSORS_MARK: str
PARAMETER_KIND: str
BUFFER_KIND: str
GRADIENT_KIND: str
STATE_KIND: str
HISTORY_MARK: str
HISTORY_ROW: str
OUT_OF_MEMORY_MARK: str
OUT_OF_MEMORY_ROW: str
OPERATORS_MARK: str
OPERATORS_ROW: str
SIGNATURES_MARK: str
STACKS_MARK: str
SCHEMAS_MARK: str
FLOP_CHECK_MARK: str
FLOP_CHECK_ROW: str
SETTINGS_MARK: str
SETTINGS_ROW: str
STANDSTILL_PHASE: str
COMPILATION_PHASE: str
RECOMPILATIONS_MARK: str
RECOMPILATIONS_ROW: str
ENDING_MARK: str
ENDING_ROW: str
GROUPS_MARK: str
GROUPS_ROW: str
TREE_MARK: str
BLOCK_HELD: int
BLOCK_ALLOCATED: int
BLOCK_FREED: int
SEGMENT_ALLOCATED: int
SEGMENT_FREED: int
