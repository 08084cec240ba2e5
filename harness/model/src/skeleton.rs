//! Candidate executions before reads-from and modification order: events and the relations that the program alone decides.
//!
//! Long because every tag and base relation that a cat file can name stands in this one place, with what builds it.

use litmus::{
    Access, ControlBarrier, Dialect, InstructionKind, InterlockEnd, LocationId, Observable, Order, Place,
    Placement, Reference, Scope, Semantics, StorageClass, SystemOperation, Test, ThreadId, Value,
};

use crate::PredictError;
use crate::cells::{Cells, Extent, Piece};
use crate::forced::forced_reads;
use crate::matrix::{Bits, Matrix};
use crate::path::{Memory, Path, Step, StepKind};
use crate::symbolic::{Constraint, LocalRead, Symbolic};
use crate::system::{self, Mark};

/// Bound on the events of one execution, initial writes included.
pub const MAX_EVENTS: usize = 256;
/// Bound on the threads of a test.
pub const MAX_THREADS: usize = 16;

/// What a model asks of candidate executions; the options comment of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Semantic {
    /// A read-modify-write is one event that reads and writes.
    pub(crate) rmw_fused: bool,
    /// One initial write for each name instead of one for each storage.
    pub(crate) initial_per_name: bool,
    /// Control barriers meet by id in any thread and never block.
    pub(crate) barriers_anywhere: bool,
    /// Final values are what a read of the device domain after everything sees, not the last write in `co`.
    pub(crate) final_device_read: bool,
    /// Values may come out of thin air.
    pub(crate) values_free: bool,
    /// It has an account of hosts, domain operations, access masks, sizes, shader calls and interlocked sections.
    pub(crate) whole_language: bool,
    /// Every byte of a storage whose accesses differ in size is a cell of its own.
    pub(crate) cells_of_bytes: bool,
    /// All of a vector access is one operation.
    pub(crate) vectors_whole: bool,
}

/// Which thread an event belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// The initial state.
    Initial,
    /// A thread of the test.
    Thread(ThreadId),
    /// The unspecified invocation of a thread's subgroup that performs its cooperative access at this instruction. It
    /// shares nothing with the thread but its barriers: any other choice has more order, so that this one stands for all
    /// (VK-CM-01, VK-CM-02).
    Company(ThreadId, u16),
    /// The reader of final values.
    Final,
}

/// One event.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) owner: Owner,
    /// Index into the thread's instructions.
    pub(crate) instruction: Option<u16>,
    pub(crate) tags: Tags,
    /// The storage accessed, by its name, or a cell of it ([`Piece::cell`]).
    pub(crate) storage: Option<LocationId>,
    /// The name through which it is accessed.
    pub(crate) reference: Option<LocationId>,
    /// The storage, where it is accessed as a block in workgroup memory: all such names of it are one reference in the texts
    /// that have explicit layouts (VK-LOC-06, VK-REF-05).
    block: Option<LocationId>,
    /// What a write stores, over the reads of the execution by event number.
    pub(crate) stored: Option<Symbolic<u16>>,
    /// What the whole operation accesses; the event is that part of it that lies in its cell.
    pub(crate) extent: Option<Extent>,
    /// The first event of the same operation: itself where it has one event.
    operation: u16,
    /// The first event of the same vector access; of what is none, of the same operation.
    vector: u16,
    /// The write half's event of this cell, where this is the read half of a read-modify-write.
    write_half: Option<u16>,
    pub(crate) place: Option<Placement>,
}

/// The sets that an event is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tags {
    bits: u32,
    /// Storage class of an access, as a bit.
    pub(crate) classes: u8,
    /// Storage-class semantics.
    pub(crate) semantics: u8,
}

macro_rules! tags {
    ($($name:ident = $bit:expr, $text:expr, $doc:expr;)*) => {
        impl Tags { $(pub(crate) const $name: u32 = 1 << $bit;)* }
        /// The base sets of a model by name, with what they hold.
        pub const BASE_SETS: &[(&str, &str)] = &[$(($text, $doc)),*];
        /// The tag of a base set that is one.
        pub(crate) fn tag_of(name: &str) -> Option<u32> {
            match name { $($text => Some(Tags::$name),)* _ => None }
        }
    };
}

tags! {
    R = 0, "R", "reads; the read half of a read-modify-write";
    W = 1, "W", "writes; the write half of a read-modify-write; initial writes";
    F = 2, "F", "memory barriers, and control barriers with an order";
    CBAR = 3, "CBAR", "control barriers";
    ATOM = 4, "ATOM", "atomic accesses";
    RMW = 5, "RMW", "halves of read-modify-writes";
    ACQ = 6, "ACQ", "acquiring reads and barriers";
    REL = 7, "REL", "releasing writes and barriers";
    AV = 8, "AV", "writes with an availability operation of their own, atomic writes included";
    VIS = 9, "VIS", "reads with a visibility operation of their own, atomic reads included";
    SEMAV = 10, "SEMAV", "operations with MakeAvailable semantics";
    SEMVIS = 11, "SEMVIS", "operations with MakeVisible semantics";
    NONPRIV = 12, "NONPRIV", "non-private accesses, atomics included";
    IW = 13, "IW", "initial writes";
    AVDEVICE = 14, "AVDEVICE", "availability operations to the device domain";
    VISDEVICE = 15, "VISDEVICE", "visibility operations from the device domain";
    INV = 16, "INV", "operations at invocation scope";
    SG = 17, "SG", "operations at subgroup scope";
    WG = 18, "WG", "operations at workgroup scope";
    QF = 19, "QF", "operations at queue-family scope";
    DV = 20, "DV", "operations at device scope";
    FINAL = 21, "FINAL", "the reads of final values";
    XD = 22, "XD", "operations at cross-device scope; HSA's system scope";
    CALL = 24, "CALL", "operations at shader-call scope";
    FI = 25, "FI", "operations at fragment-interlock scope";
    HOST = 26, "HOST", "operations of host threads";
    NONCOHERENT = 27, "NONCOHERENT", "accesses of host threads to memory that is not host-coherent";
    DOMDEVICE = 28, "DOMDEVICE", "domain operations from the host domain to the device domain";
    DOMHOST = 29, "DOMHOST", "domain operations from the device domain to the host domain";
    AVHOST = 30, "AVHOST", "availability operations to the host domain (flush)";
    VISHOST = 31, "VISHOST", "visibility operations from the host domain (invalidate)";
    DECISIVE = 23, "DECISIVE", "reads that an HSA branch, await or address depends on, whether or not anything follows";
}

/// The base relations of a model by name, with what they hold.
pub const BASE_RELATIONS: &[(&str, &str)] = &[
    ("po", "program order; initial writes are in none"),
    ("int", "same thread, reflexive"),
    ("ext", "different threads"),
    ("loc", "same storage, or same cell of it where accesses differ in size; reflexive on accesses"),
    ("part", "to the other events of the same access, which lie in other cells"),
    ("component", "to the events of the other components of the same vector access"),
    ("partial", "accesses of one storage that touch different sets of bytes"),
    (
        "uncovered",
        "an access and an operation of the API whose access mask or range leaves it out, both ways",
    ),
    ("scall", "shader-call-related, reflexive"),
    ("sco", "shader-call order between different invocations, transitive"),
    ("sfi", "fragments that overlap, reflexive"),
    ("interlock", "from the end of an interlocked section to the begin of a later one that overlaps"),
    ("vloc", "same name of memory, reflexive on accesses"),
    ("sref", "the same as vloc"),
    ("block", "blocks in workgroup memory that share storage, reflexive on accesses"),
    ("addr", "from a read to an access whose HSA address depends on it; other addresses are literal"),
    ("ssg", "same subgroup, reflexive"),
    ("swg", "same workgroup, reflexive"),
    ("sqf", "same queue family, reflexive"),
    ("rf", "reads-from"),
    ("co", "modification order of each storage, total, initial writes first"),
    ("rmw", "from the read half of a read-modify-write to its write half"),
    ("syncbar", "instances of one control barrier that meet"),
    ("ssw", "system-synchronizes-with"),
    ("data", "from a read to a write whose value is computed from it"),
    ("ctrl", "from a read to what an HSA branch or await that depends on it decides"),
    ("pkt", "HSA's packet fences: from every event of one thread to every event of another; the same as ssw"),
];

impl Tags {
    pub(crate) fn has(self, bits: u32) -> bool {
        self.bits & bits == bits
    }

    pub(crate) fn any(self, bits: u32) -> bool {
        self.bits & bits != 0
    }

    pub(crate) fn bits(self) -> u32 {
        self.bits
    }

    fn add(&mut self, bits: u32) {
        self.bits |= bits;
    }

    fn add_scope(&mut self, scope: Scope) {
        self.add(match scope {
            Scope::Invocation => Tags::INV,
            Scope::Subgroup => Tags::SG,
            Scope::Workgroup => Tags::WG,
            Scope::QueueFamily => Tags::QF,
            Scope::Device => Tags::DV,
            Scope::ShaderCall => Tags::CALL,
            Scope::FragmentInterlock => Tags::FI,
            Scope::CrossDevice => Tags::DV | Tags::XD,
        });
    }

    fn add_release(&mut self, semantics: &Semantics) {
        if semantics.order.releases() {
            self.add(Tags::REL);
            self.semantics |= semantics.classes.0;
            if semantics.make_available {
                self.add(Tags::SEMAV);
            }
        }
    }

    fn add_acquire(&mut self, semantics: &Semantics) {
        if semantics.order.acquires() {
            self.add(Tags::ACQ);
            self.semantics |= semantics.classes.0;
            if semantics.make_visible {
                self.add(Tags::SEMVIS);
            }
        }
    }
}

/// How the final value of an observable comes about.
#[derive(Clone, Debug)]
pub(crate) enum FinalValue {
    /// An expression over reads by event number.
    Expression(Symbolic<u16>),
    /// The last write to a storage in `co`.
    LastWrite(LocationId),
}

/// A candidate execution without reads-from and modification order.
#[derive(Clone, Debug)]
pub(crate) struct Skeleton {
    pub(crate) events: Vec<Event>,
    /// Whether every thread ran to its end.
    pub(crate) terminated: bool,
    /// Whether the bound of loops ended a thread.
    pub(crate) cut: bool,
    /// What the values read must meet.
    pub(crate) constraints: Vec<Constraint<u16>>,
    /// Final values of [`Test::observables`], in that order.
    pub(crate) finals: Vec<FinalValue>,
    /// Pairs of a read and a write that a `.test` file forces it to read from.
    pub(crate) forced: Vec<(u16, u16)>,
    /// Pairs of control-barrier events that meet.
    pub(crate) meetings: Vec<(u16, u16)>,
    pub(crate) system_sync: Vec<(u16, u16)>,
    pub(crate) address: Vec<(u16, u16)>,
    pub(crate) control: Vec<(u16, u16)>,
    shader_calls: Vec<(u16, u16)>,
    sections: Vec<(u16, u16)>,
    uncovered: Vec<(u16, u16)>,
    /// For each thread a number that shader-call-related threads share; empty where there are no calls.
    call_groups: Vec<usize>,
    /// Pairs of threads that are overlapping fragments.
    overlapping: Vec<(ThreadId, ThreadId)>,
}

/// Every skeleton of a combination of paths, one for each thread: several only where a quorum leaves a choice.
pub(crate) fn skeletons(
    test: &Test,
    paths: &[&Path],
    semantic: Semantic,
) -> Result<Vec<Skeleton>, PredictError> {
    let executed = executed_steps(test, paths, semantic);
    let mut skeleton = Skeleton {
        events: Vec::new(),
        terminated: paths.iter().all(|path| path.terminated)
            && executed.iter().zip(paths).all(|(count, path)| *count == path.steps.len()),
        cut: paths.iter().any(|path| path.cut),
        constraints: Vec::new(),
        finals: Vec::new(),
        forced: Vec::new(),
        meetings: Vec::new(),
        system_sync: Vec::new(),
        address: Vec::new(),
        control: Vec::new(),
        shader_calls: Vec::new(),
        sections: Vec::new(),
        uncovered: Vec::new(),
        call_groups: Vec::new(),
        overlapping: Vec::new(),
    };
    let observables = test.observables();
    let observed = observables.iter().filter_map(|observable| match observable {
        Observable::Location(location, component) => Some(Extent::of_component(test, *location, *component)),
        Observable::Register(..) => None,
    });
    let extents = accesses(paths, &executed).chain(observed);
    let cells = Cells::new(test, extents, semantic.cells_of_bytes);
    skeleton.add_initial_writes(test, paths, &executed, &observables, &cells, semantic);
    let mut barriers: Vec<(u16, ThreadId, &ControlBarrier, u16)> = Vec::new();
    let mut marks: Vec<Mark> = Vec::new();
    let mut reads_of: Vec<Vec<Symbolic<u16>>> = Vec::new();
    for (index, (path, count)) in paths.iter().zip(&executed).enumerate() {
        let thread = ThreadId(index as u16);
        let mut reads = Vec::new();
        let steps = &path.steps[..*count];
        let mut company = steps
            .iter()
            .any(|step| step.cooperative)
            .then(|| skeleton.with_own_events(test, thread, steps, &cells, semantic));
        for step in steps {
            if let Some(company) = company.as_mut().filter(|_| step.cooperative) {
                company.add_company(test, thread, (steps, step), &mut reads, &mut barriers, &cells, semantic);
                continue;
            }
            if let StepKind::ControlBarrier = step.kind
                && let Some(barrier) = barrier_of(test, thread, step.instruction)
            {
                barriers.push((skeleton.events.len() as u16, thread, barrier, step.occurrence));
            }
            let before = skeleton.events.len() as u16;
            skeleton.add_step(test, thread, step, &mut reads, &cells, semantic);
            if let StepKind::System = step.kind {
                let next = match test.thread(thread).instructions[usize::from(step.instruction)].kind {
                    InstructionKind::System(SystemOperation::Wait(_)) => before,
                    _ => skeleton.events.len() as u16,
                };
                marks.push(Mark { thread, instruction: step.instruction, next });
            }
        }
        if let Some(mut company) = company {
            skeleton.events.extend(company.events.drain(skeleton.events.len()..));
        }
        for read in &path.decisive {
            if let Some(value) = reads.get(usize::from(*read)) {
                value.for_each_read(&mut |event| {
                    skeleton.events[usize::from(event)].tags.add(Tags::DECISIVE);
                });
            }
        }
        for constraint in &path.constraints {
            let mut known = true;
            let mut check = |read: u16| known &= usize::from(read) < reads.len();
            constraint.left.for_each_read(&mut check);
            constraint.right.for_each_read(&mut check);
            // A condition on a read behind a barrier that blocks for ever is never evaluated.
            if known {
                skeleton.constraints.push(constraint.map(&|read| reads[usize::from(read)].clone()));
            }
        }
        reads_of.push(reads);
    }
    skeleton.add_finals(test, paths, &reads_of, &observables, &cells, semantic);
    if skeleton.events.len() > MAX_EVENTS {
        return Err(PredictError::TooManyEvents { events: skeleton.events.len(), bound: MAX_EVENTS });
    }
    skeleton.add_system_sync(test);
    if !marks.is_empty() {
        skeleton.add_system(test, &marks);
    }
    if let Some(khronos) = &test.khronos {
        skeleton.forced = forced_reads(&skeleton, khronos);
    }
    Ok(skeleton.with_meetings(test, &barriers, semantic))
}

/// Every access that is executed.
fn accesses<'p>(paths: &'p [&Path], executed: &'p [usize]) -> impl Iterator<Item = Extent> + Clone + 'p {
    paths.iter().zip(executed).flat_map(|(path, count)| {
        path.steps.iter().take(*count).filter_map(|step| match &step.kind {
            StepKind::Read(memory) | StepKind::Write(memory, _) | StepKind::Rmw(memory, _) => {
                Some(memory.extent)
            }
            _ => None,
        })
    })
}

fn barrier_of(test: &Test, thread: ThreadId, instruction: u16) -> Option<&ControlBarrier> {
    match test.thread(thread).instructions.get(usize::from(instruction)).map(|i| &i.kind) {
        Some(InstructionKind::ControlBarrier(barrier)) => Some(barrier),
        _ => None,
    }
}

/// Whether two control barriers belong to one group: the same id or resource, in one instance of their execution scope.
fn same_barrier(
    test: &Test,
    (left_thread, left): (ThreadId, &ControlBarrier),
    (right_thread, right): (ThreadId, &ControlBarrier),
    semantic: Semantic,
) -> bool {
    let by_name = match (&left.resource, &right.resource) {
        (None, None) => left.id == right.id,
        (Some(l), Some(r)) => l == r,
        _ => false,
    };
    if semantic.barriers_anywhere {
        return by_name;
    }
    by_name
        && left.execution_scope == right.execution_scope
        && shares(place(test, left_thread), place(test, right_thread), left.execution_scope)
}

fn place(test: &Test, thread: ThreadId) -> Option<Placement> {
    match test.thread(thread).place {
        Place::Device(placement) => Some(placement),
        Place::Host => None,
    }
}

/// The storage of a name that is a block in workgroup memory.
fn block_of(test: &Test, name: LocationId) -> Option<LocationId> {
    matches!(test.location(name).reference, Some(Reference::Workgroup)).then(|| test.storage_of(name))
}

fn shares(left: Option<Placement>, right: Option<Placement>, scope: Scope) -> bool {
    let (Some(left), Some(right)) = (left, right) else { return false };
    match scope {
        Scope::Invocation => false,
        Scope::Subgroup => left == right,
        Scope::Workgroup => left.queue_family == right.queue_family && left.workgroup == right.workgroup,
        Scope::QueueFamily => left.queue_family == right.queue_family,
        // Placement says nothing about them.
        Scope::ShaderCall | Scope::FragmentInterlock => false,
        Scope::Device | Scope::CrossDevice => true,
    }
}

/// How many steps of each path execute: up to a control barrier that blocks it for ever, and none where the whole thread
/// comes after one that does not end (`#synchronization-dependencies`).
fn executed_steps(test: &Test, paths: &[&Path], semantic: Semantic) -> Vec<usize> {
    let mut begun = vec![true; paths.len()];
    loop {
        let executed = steps_up_to_barriers(test, paths, &begun, semantic);
        let ends = |thread: ThreadId| {
            let index = usize::from(thread.0);
            paths[index].terminated && begun[index] && executed[index] == paths[index].steps.len()
        };
        let whole = |point: &litmus::SyncPoint| point.instruction.is_none();
        let waiting = test.system_sync.iter().find(|sync| {
            let other = sync.from.thread != sync.to.thread;
            let begun = begun[usize::from(sync.to.thread.0)];
            other && begun && whole(&sync.from) && whole(&sync.to) && !ends(sync.from.thread)
        });
        match waiting {
            Some(sync) => begun[usize::from(sync.to.thread.0)] = false,
            None => return executed,
        }
    }
}

/// How many steps of each path execute before a control barrier blocks it for ever: the least solution. Those that have not
/// begun execute none.
fn steps_up_to_barriers(test: &Test, paths: &[&Path], begun: &[bool], semantic: Semantic) -> Vec<usize> {
    let all = |thread: usize| if begun[thread] { paths[thread].steps.len() } else { 0 };
    let stop_after = |path: &Path, from: usize| {
        path.steps[from..]
            .iter()
            .position(|step| matches!(step.kind, StepKind::ControlBarrier))
            .map_or(path.steps.len(), |offset| from + offset)
    };
    if semantic.barriers_anywhere {
        return (0..paths.len()).map(all).collect();
    }
    // Position of the barrier each thread stands at, or the end of its path.
    let mut at: Vec<usize> =
        (0..paths.len()).map(|thread| stop_after(paths[thread], 0).min(all(thread))).collect();
    loop {
        let reached = |thread: usize, instruction: usize, occurrence: u16| {
            let path = paths[thread];
            if !begun[thread] {
                return false;
            }
            path.steps.iter().take(at[thread] + 1).any(|step| {
                usize::from(step.instruction) == instruction
                    && step.occurrence == occurrence
                    && matches!(step.kind, StepKind::ControlBarrier)
            })
        };
        let passes = |thread: usize| {
            if !begun[thread] {
                return None;
            }
            let path = paths[thread];
            let step = path.steps.get(at[thread])?;
            let id = ThreadId(thread as u16);
            let barrier = barrier_of(test, id, step.instruction)?;
            let mut arrived = 0;
            let mut missing = false;
            for other in 0..paths.len() {
                let other_id = ThreadId(other as u16);
                for index in 0..test.thread(other_id).instructions.len() {
                    let Some(candidate) = barrier_of(test, other_id, index as u16) else { continue };
                    if same_barrier(test, (id, barrier), (other_id, candidate), semantic) {
                        if reached(other, index, step.occurrence) {
                            arrived += 1;
                        } else {
                            missing = true;
                        }
                    }
                }
            }
            Some(match barrier.quorum {
                Some(quorum) => arrived >= quorum,
                None => !missing,
            })
        };
        let passing: Vec<usize> = (0..paths.len()).filter(|t| passes(*t) == Some(true)).collect();
        if passing.is_empty() {
            return at;
        }
        for thread in passing {
            at[thread] = stop_after(paths[thread], at[thread] + 1);
        }
    }
}

impl Skeleton {
    fn add_initial_writes(
        &mut self,
        test: &Test,
        paths: &[&Path],
        executed: &[usize],
        observables: &[Observable],
        cells: &Cells,
        semantic: Semantic,
    ) {
        let mut used: Vec<LocationId> = Vec::new();
        for (path, count) in paths.iter().zip(executed) {
            for step in path.steps.iter().take(*count) {
                if let StepKind::Read(memory) | StepKind::Write(memory, _) | StepKind::Rmw(memory, _) =
                    &step.kind
                {
                    used.push(memory.location);
                }
            }
        }
        for observable in observables {
            if let Observable::Location(location, _) = observable {
                used.push(*location);
            }
        }
        if !semantic.initial_per_name {
            used.iter_mut().for_each(|location| *location = test.storage_of(*location));
        }
        used.sort_unstable();
        used.dedup();
        for location in used {
            let extent = Extent::of_name(test, location);
            let bits = test.initial_bits(location);
            let mut event = Event::new(Owner::Initial, None, self.events.len() as u16, None);
            event.tags.add(Tags::IW | Tags::W);
            event.reference = Some(location);
            event.block = block_of(test, location);
            event.extent = Some(extent);
            for piece in cells.pieces(extent) {
                let mut event = event.clone();
                event.storage = Some(piece.cell);
                if test.location(location).is_vector() {
                    event.extent = Some(extent.part(test, piece));
                }
                let part = Symbolic::Known(Value((bits >> (8 * piece.before)) as u64));
                event.stored = Some(part.part(0, piece.bytes));
                self.events.push(event);
            }
        }
    }

    /// Adds an event for each piece of a read, and gives the value that is read.
    fn push_read(&mut self, event: &Event, pieces: &[Piece]) -> Symbolic<u16> {
        let mut parts = Vec::new();
        for piece in pieces {
            let mut part = event.clone();
            part.storage = Some(piece.cell);
            parts.push((piece.before, Symbolic::Read(self.events.len() as u16)));
            self.events.push(part);
        }
        match (parts.pop(), parts.is_empty()) {
            (Some((_, whole)), true) => whole,
            (last, _) => {
                parts.extend(last);
                Symbolic::Join(parts)
            }
        }
    }

    /// Adds an event for each piece of a write.
    fn push_write(&mut self, event: &Event, stored: &Symbolic<u16>, pieces: &[Piece]) {
        for piece in pieces {
            let mut part = event.clone();
            part.storage = Some(piece.cell);
            part.stored = Some(part_of(stored, *piece));
            self.events.push(part);
        }
    }

    /// This with the events of a thread that it performs itself.
    fn with_own_events(
        &self,
        test: &Test,
        thread: ThreadId,
        steps: &[Step],
        cells: &Cells,
        semantic: Semantic,
    ) -> Skeleton {
        let mut own = self.clone();
        let mut reads = Vec::new();
        for step in steps {
            if !step.cooperative {
                own.add_step(test, thread, step, &mut reads, cells, semantic);
            } else if let StepKind::Read(_) = step.kind {
                // Only the number of events matters here.
                reads.push(Symbolic::Known(Value(0)));
            }
        }
        own
    }

    /// Adds what the invocation does that performs a cooperative access: the access and the barriers around it.
    #[expect(clippy::too_many_arguments, reason = "what `skeletons` has at hand for each step")]
    fn add_company<'t>(
        &mut self,
        test: &'t Test,
        thread: ThreadId,
        (steps, access): (&[Step], &Step),
        reads: &mut Vec<Symbolic<u16>>,
        barriers: &mut Vec<(u16, ThreadId, &'t ControlBarrier, u16)>,
        cells: &Cells,
        semantic: Semantic,
    ) {
        let first = self.events.len();
        for step in steps {
            if std::ptr::eq(step, access) {
                self.add_step(test, thread, step, reads, cells, semantic);
                continue;
            }
            if let StepKind::ControlBarrier = step.kind
                && let Some(barrier) = barrier_of(test, thread, step.instruction)
            {
                barriers.push((self.events.len() as u16, thread, barrier, step.occurrence));
            }
            if let StepKind::ControlBarrier | StepKind::Fence(..) = step.kind {
                self.add_step(test, thread, step, &mut Vec::new(), cells, semantic);
            }
        }
        for event in &mut self.events[first..] {
            event.owner = Owner::Company(thread, access.instruction);
        }
    }

    fn add_step(
        &mut self,
        test: &Test,
        thread: ThreadId,
        step: &Step,
        reads: &mut Vec<Symbolic<u16>>,
        cells: &Cells,
        semantic: Semantic,
    ) {
        let here = self.events.len() as u16;
        for (dependent, pairs) in [(&step.address, &mut self.address), (&step.control, &mut self.control)] {
            for read in dependent {
                reads[usize::from(*read)].for_each_read(&mut |event| pairs.push((event, here)));
            }
        }
        let mut event = Event::new(Owner::Thread(thread), Some(step.instruction), here, place(test, thread));
        if step.continues
            && let Some(before) = self.events.last()
        {
            event.vector = before.vector;
            if semantic.vectors_whole {
                event.operation = before.operation;
            }
        }
        let host = test.thread(thread).place == Place::Host;
        if host {
            event.tags.add(Tags::HOST);
        }
        let value = |stored: &Symbolic<LocalRead>, reads: &[Symbolic<u16>]| {
            stored.map(&|read| reads[usize::from(read)].clone())
        };
        match &step.kind {
            StepKind::Read(memory) => {
                event.access(test, memory, host);
                event.tags.add(Tags::R);
                event.tags.read_access(memory.access);
                reads.push(self.push_read(&event, &cells.pieces(memory.extent)));
                return;
            }
            StepKind::Write(memory, stored) => {
                event.access(test, memory, host);
                event.tags.add(Tags::W);
                event.tags.write_access(memory.access);
                self.push_write(&event, &value(stored, reads), &cells.pieces(memory.extent));
                return;
            }
            StepKind::Rmw(memory, stored) => {
                let pieces = cells.pieces(memory.extent);
                event.access(test, memory, host);
                let mut write = event.clone();
                event.tags.add(Tags::R);
                event.tags.read_access(memory.access);
                if stored.is_some() {
                    event.tags.add(Tags::RMW);
                }
                if stored.is_some() && semantic.rmw_fused {
                    event.tags.add(Tags::W);
                    event.tags.write_access(memory.access);
                }
                reads.push(self.push_read(&event, &pieces));
                let Some(stored) = stored else { return };
                let stored = value(stored, reads);
                if semantic.rmw_fused {
                    for (index, piece) in pieces.iter().enumerate() {
                        self.events[usize::from(here) + index].stored = Some(part_of(&stored, *piece));
                    }
                } else {
                    (write.operation, write.vector) = (self.events.len() as u16, self.events.len() as u16);
                    write.tags.add(Tags::W | Tags::RMW);
                    write.tags.write_access(memory.access);
                    for index in 0..pieces.len() as u16 {
                        self.events[usize::from(here + index)].write_half = Some(write.operation + index);
                    }
                    self.push_write(&write, &stored, &pieces);
                }
                return;
            }
            StepKind::Fence(scope, semantics) => event.fence(*scope, semantics),
            StepKind::ControlBarrier => {
                event.tags.add(Tags::CBAR);
                if let Some(barrier) = barrier_of(test, thread, step.instruction) {
                    match &barrier.semantics {
                        Some(semantics) => event.fence(barrier.memory_scope, semantics),
                        None => event.tags.add_scope(barrier.memory_scope),
                    }
                }
            }
            StepKind::System => {
                self.push_system(test, thread, &event);
                return;
            }
        }
        self.events.push(event);
    }

    /// Adds the events of an operation of the API, of an interlocked section or of a shader call.
    fn push_system(&mut self, test: &Test, thread: ThreadId, event: &Event) {
        let instructions = &test.thread(thread).instructions;
        let kind = event.instruction.and_then(|index| instructions.get(usize::from(index))).map(|i| &i.kind);
        match kind {
            Some(InstructionKind::System(operation)) => {
                for tags in system::operation_tags(operation) {
                    let mut event = event.clone();
                    (event.operation, event.vector) = (self.events.len() as u16, self.events.len() as u16);
                    event.tags.add(*tags);
                    self.events.push(event);
                }
            }
            Some(InstructionKind::Interlock(interlock)) => {
                let mut event = event.clone();
                event.tags.add_scope(Scope::FragmentInterlock);
                // The end releases and the begin acquires UniformMemory and ImageMemory; neither is a memory barrier.
                event.tags.semantics =
                    (1 << StorageClass::Buffer.index()) | (1 << StorageClass::Image.index());
                event.tags.add(match interlock.end {
                    InterlockEnd::Begin => Tags::ACQ,
                    InterlockEnd::End => Tags::REL,
                });
                self.events.push(event);
            }
            // Shader-call order passes through it where the caller does nothing else.
            Some(InstructionKind::ShaderCall(_)) => self.events.push(event.clone()),
            _ => {}
        }
    }

    /// Adds what submissions, waits, access masks, shader calls and interlocked sections relate.
    fn add_system(&mut self, test: &Test, marks: &[Mark]) {
        self.system_sync.extend(system::submission_order(test, &self.events, marks));
        self.shader_calls = system::call_order(test, &self.events, marks);
        self.call_groups = system::call_groups(test);
        self.sections = system::interlock_order(test, &self.events);
        self.uncovered = system::uncovered(test, &self.events);
        for left in 0..test.threads.len() as u16 {
            for right in 0..test.threads.len() as u16 {
                if system::overlap(test, ThreadId(left), ThreadId(right)) {
                    self.overlapping.push((ThreadId(left), ThreadId(right)));
                }
            }
        }
    }

    fn add_finals(
        &mut self,
        test: &Test,
        paths: &[&Path],
        reads_of: &[Vec<Symbolic<u16>>],
        observables: &[Observable],
        cells: &Cells,
        semantic: Semantic,
    ) {
        let with_reader = self.terminated
            && semantic.final_device_read
            && observables.iter().any(|o| matches!(o, Observable::Location(..)));
        let reader = |tags, here: usize| {
            let mut event = Event::new(Owner::Final, None, here as u16, None);
            event.tags.add(tags);
            event
        };
        // Memory of HSA has no device domain that values must get out of.
        if with_reader && test.dialect != Dialect::Hsa {
            let hosts = test.threads.iter().any(|thread| thread.place == Place::Host);
            let from_hosts: &[u32] = if hosts { &[Tags::AVHOST, Tags::DOMDEVICE] } else { &[] };
            for tags in from_hosts.iter().chain(&[Tags::AVDEVICE, Tags::VISDEVICE]) {
                self.events.push(reader(*tags, self.events.len()));
            }
        }
        for observable in observables {
            let value = match observable {
                Observable::Register(thread, register) => {
                    let index = usize::from(thread.0);
                    let value = &paths[index].registers[usize::from(register.0)];
                    let mut known = true;
                    value.for_each_read(&mut |read| known &= usize::from(read) < reads_of[index].len());
                    // Behind a barrier that blocks for ever a register keeps what it had at first.
                    FinalValue::Expression(if known {
                        value.map(&|read| reads_of[index][usize::from(read)].clone())
                    } else {
                        Symbolic::Known(test.initial_register(*thread, *register))
                    })
                }
                Observable::Location(location, component) if !self.terminated => {
                    FinalValue::Expression(Symbolic::Known(test.initial_value(*location, *component)))
                }
                Observable::Location(location, component) if semantic.final_device_read => {
                    let mut event = reader(Tags::R | Tags::FINAL, self.events.len());
                    let extent = Extent::of_component(test, *location, *component);
                    event.reference = Some(*location);
                    event.block = block_of(test, *location);
                    event.extent = Some(extent);
                    FinalValue::Expression(self.push_read(&event, &cells.pieces(extent)))
                }
                Observable::Location(location, component) => {
                    let pieces = cells.pieces(Extent::of_component(test, *location, *component));
                    // Models that ask for the last write know no accesses to parts of a number.
                    let cell = pieces.first().map_or(test.storage_of(*location), |piece| piece.cell);
                    FinalValue::LastWrite(cell)
                }
            };
            self.finals.push(value);
        }
    }

    fn add_system_sync(&mut self, test: &Test) {
        for sync in &test.system_sync {
            if sync.from.thread == sync.to.thread
                && sync.from.instruction.is_none()
                && sync.to.instruction.is_none()
            {
                continue;
            }
            for (from, left) in self.events.iter().enumerate() {
                let matches = |event: &Event, point: &litmus::SyncPoint| {
                    event.thread() == Some(point.thread)
                        && point.instruction.is_none_or(|i| event.instruction == Some(i))
                };
                if !matches(left, &sync.from) {
                    continue;
                }
                for (to, right) in self.events.iter().enumerate() {
                    if from != to && matches(right, &sync.to) {
                        self.system_sync.push((from as u16, to as u16));
                    }
                }
            }
        }
        // The reader of final values comes after every thread.
        for (to, reader) in self.events.iter().enumerate() {
            if reader.owner == Owner::Final {
                for (from, event) in self.events.iter().enumerate() {
                    if event.thread().is_some() {
                        self.system_sync.push((from as u16, to as u16));
                    }
                }
            }
        }
    }

    /// Adds the pairs of barriers that meet. A named barrier with a quorum lets any large enough subset of its arrivals
    /// be the ones that the others wait for.
    fn with_meetings(
        mut self,
        test: &Test,
        barriers: &[(u16, ThreadId, &ControlBarrier, u16)],
        semantic: Semantic,
    ) -> Vec<Skeleton> {
        let pair = |left: &(u16, ThreadId, &ControlBarrier, u16),
                    right: &(u16, ThreadId, &ControlBarrier, u16)| {
            left.2.id == right.2.id
                && left.3 == right.3
                && same_barrier(test, (left.1, left.2), (right.1, right.2), semantic)
        };
        let mut choices: Vec<Vec<Vec<u16>>> = Vec::new();
        let mut grouped: Vec<u16> = Vec::new();
        for barrier in barriers {
            let Some(quorum) = barrier.2.quorum else {
                for other in barriers {
                    if other.2.quorum.is_none() && pair(barrier, other) {
                        self.meetings.push((barrier.0, other.0));
                    }
                }
                continue;
            };
            if grouped.contains(&barrier.0) {
                continue;
            }
            let members: Vec<u16> = barriers
                .iter()
                .filter(|other| {
                    other.2.quorum.is_some()
                        && other.3 == barrier.3
                        && same_barrier(test, (barrier.1, barrier.2), (other.1, other.2), semantic)
                })
                .map(|other| other.0)
                .collect();
            grouped.extend(&members);
            let subsets = (0u32..1 << members.len().min(20))
                .filter(|mask| mask.count_ones() >= quorum)
                .map(|mask| {
                    members
                        .iter()
                        .enumerate()
                        .filter(|(i, _)| mask & (1 << i) != 0)
                        .map(|(_, m)| *m)
                        .collect()
                })
                .collect();
            choices.push(subsets);
        }
        let mut skeletons = vec![self];
        for subsets in choices {
            skeletons = skeletons
                .iter()
                .flat_map(|skeleton| {
                    subsets.iter().map(|subset| {
                        let mut chosen = skeleton.clone();
                        for first in barriers.iter().filter(|b| subset.contains(&b.0)) {
                            for second in barriers.iter().filter(|b| pair(first, b)) {
                                chosen.meetings.push((first.0, second.0));
                            }
                        }
                        chosen
                    })
                })
                .collect();
        }
        skeletons
    }

    /// Number of events.
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// The value that every read must have before it matters which write it came from; writes with known values that a
    /// constraint on this read alone excludes are not candidates.
    pub(crate) fn candidates(&self, read: usize) -> Vec<usize> {
        let target = &self.events[read];
        (0..self.events.len())
            .filter(|&write| {
                let event = &self.events[write];
                event.tags.has(Tags::W)
                    && event.storage == target.storage
                    && self.may_read(read, write)
                    && self.value_possible(read, event.stored.as_ref().and_then(Symbolic::known))
            })
            .collect()
    }

    /// Whether a read may read from a write to its location: never from its own read-modify-write, and from nothing
    /// but what it is forced to read from.
    pub(crate) fn may_read(&self, read: usize, write: usize) -> bool {
        let own = write == read || self.events[read].write_half.map(usize::from) == Some(write);
        !own && self.forced.iter().all(|(r, w)| usize::from(*r) != read || usize::from(*w) == write)
    }

    fn value_possible(&self, read: usize, value: Option<Value>) -> bool {
        let Some(value) = value else { return true };
        self.constraints.iter().all(|constraint| {
            constraint.met(&mut |other| (usize::from(other) == read).then_some(value)) != Some(false)
        })
    }

    /// The storages that are accessed, each once.
    pub(crate) fn storages(&self) -> Vec<LocationId> {
        let mut storages: Vec<LocationId> = self.events.iter().filter_map(|event| event.storage).collect();
        storages.sort_unstable();
        storages.dedup();
        storages
    }

    /// The storages whose last write is observed as such.
    pub(crate) fn observed_storages(&self) -> Vec<LocationId> {
        self.finals
            .iter()
            .filter_map(|value| match value {
                FinalValue::LastWrite(storage) => Some(*storage),
                FinalValue::Expression(_) => None,
            })
            .collect()
    }

    /// A base set of the model. `mask` is the argument of `SC` and `SEM`.
    pub(crate) fn base_set<S: Bits>(&self, name: &str, mask: Option<u8>) -> Option<S> {
        let collect = |test: &dyn Fn(&Event) -> bool| {
            let mut set = S::empty();
            for (index, event) in self.events.iter().enumerate() {
                if test(event) {
                    set.insert(index);
                }
            }
            set
        };
        if let Some(mask) = mask {
            return match name {
                "SC" => Some(collect(&|e| e.tags.classes & mask != 0)),
                "SEM" => Some(collect(&|e| e.tags.semantics & mask == mask)),
                _ => None,
            };
        }
        let digit = |prefix: &str| {
            name.strip_prefix(prefix).and_then(|d| d.parse::<u8>().ok()).filter(|d| *d < 4).map(|d| 1u8 << d)
        };
        if let Some(class) = digit("SEMSC") {
            return Some(collect(&|e| e.tags.semantics & class != 0));
        }
        if let Some(class) = digit("SC") {
            return Some(collect(&|e| e.tags.classes & class != 0));
        }
        match name {
            "M" => Some(collect(&|e| e.tags.any(Tags::R | Tags::W))),
            "A" => Some(collect(&|e| e.tags.has(Tags::ATOM))),
            "GLOBAL" => Some(collect(&|e| e.tags.classes == 1 << StorageClass::Buffer.index())),
            "GROUP" => Some(collect(&|e| e.tags.classes == 1 << StorageClass::Workgroup.index())),
            "PRIV" => {
                Some(collect(&|e| e.tags.any(Tags::R | Tags::W) && !e.tags.any(Tags::NONPRIV | Tags::IW)))
            }
            _ => tag_of(name).map(|tag| collect(&|e| e.tags.has(tag))),
        }
    }

    /// Each event with those of the same key; events without one are left out.
    fn alike<M: Matrix, K: PartialEq>(&self, key: impl Fn(&Event) -> Option<K>) -> M {
        let mut matrix = M::empty(self.len());
        for (i, event) in self.events.iter().enumerate() {
            let Some(wanted) = key(event) else { continue };
            if !matrix.row(i).is_empty() {
                continue;
            }
            let mut row = M::Set::empty();
            for (j, other) in self.events.iter().enumerate().skip(i) {
                if key(other).as_ref() == Some(&wanted) {
                    row.insert(j);
                }
            }
            row.iter().for_each(|j| matrix.set_row(j, row));
        }
        matrix
    }

    /// A base relation of the model that the program alone decides; `None` for `rf`, `co` and unknown names.
    pub(crate) fn base_relation<M: Matrix>(&self, name: &str) -> Option<M> {
        let n = self.len();
        let list = |list: &[(u16, u16)]| {
            M::from_pairs(n, list.iter().map(|(from, to)| (usize::from(*from), usize::from(*to))))
        };
        let pairs = |related: &dyn Fn(usize, usize) -> bool| {
            M::from_pairs(
                n,
                (0..n).flat_map(|i| (0..n).map(move |j| (i, j))).filter(|(i, j)| related(*i, *j)),
            )
        };
        let sharing = |scope: Scope| {
            self.alike(|event| {
                event.place.map(|place| match scope {
                    Scope::Subgroup => place,
                    Scope::Workgroup => Placement { subgroup: 0, ..place },
                    _ => Placement { subgroup: 0, workgroup: 0, ..place },
                })
            })
        };
        // Events of one thread stand together.
        let thread = |i: usize| {
            let owner = self.events[i].owner;
            let mut end = i + 1;
            while owner != Owner::Initial && self.events.get(end).is_some_and(|e| e.owner == owner) {
                end += 1;
            }
            end
        };
        let same_thread = || {
            let mut matrix = M::empty(n);
            let mut start = 0;
            while start < n {
                let end = thread(start);
                let events = M::Set::universe(end).difference(M::Set::universe(start));
                (start..end).for_each(|i| matrix.set_row(i, events));
                start = end;
            }
            matrix
        };
        Some(match name {
            "po" => {
                let mut matrix = same_thread();
                for i in 0..n {
                    // Parts of one operation are in no order, nor are components of a vector; they stand together.
                    let vector = self.events[i].vector;
                    let mut next = i + 1;
                    while self.events.get(next).is_some_and(|event| event.vector == vector) {
                        next += 1;
                    }
                    matrix.set_row(i, matrix.row(i).difference(M::Set::universe(next)));
                }
                matrix
            }
            "int" => same_thread(),
            "ext" => same_thread().complement(n),
            "loc" => self.alike(|event| event.storage),
            "vloc" | "sref" => self.alike(|event| event.reference),
            "block" => self.alike(|event| event.block),
            "ssg" => sharing(Scope::Subgroup),
            "swg" => sharing(Scope::Workgroup),
            "sqf" => sharing(Scope::QueueFamily),
            "part" => pairs(&|i, j| i != j && self.events[i].operation == self.events[j].operation),
            "component" => pairs(&|i, j| {
                let (left, right) = (&self.events[i], &self.events[j]);
                left.vector == right.vector && left.operation != right.operation
            }),
            "partial" => pairs(&|i, j| match (self.events[i].extent, self.events[j].extent) {
                (Some(left), Some(right)) => left.storage == right.storage && left != right,
                _ => false,
            }),
            "uncovered" => list(&self.uncovered),
            "sco" => list(&self.shader_calls),
            "interlock" => list(&self.sections),
            "scall" => pairs(&|i, j| {
                self.both_threads(i, j).is_some_and(|(left, right)| {
                    let group = |thread: ThreadId| self.call_groups.get(usize::from(thread.0));
                    left == right || (group(left).is_some() && group(left) == group(right))
                })
            }),
            "sfi" => pairs(&|i, j| {
                self.both_threads(i, j)
                    .is_some_and(|pair| pair.0 == pair.1 || self.overlapping.contains(&pair))
            }),
            "rmw" => {
                let halves = self.events.iter().enumerate();
                M::from_pairs(n, halves.filter_map(|(i, event)| Some((i, usize::from(event.write_half?)))))
            }
            "addr" => list(&self.address),
            "ctrl" => list(&self.control),
            "syncbar" => list(&self.meetings),
            "ssw" | "pkt" => list(&self.system_sync),
            "data" => {
                let mut matrix = M::empty(n);
                for (write, event) in self.events.iter().enumerate() {
                    if let Some(stored) = &event.stored {
                        stored.for_each_read(&mut |read| {
                            // A fused read-modify-write does not depend on itself.
                            if usize::from(read) != write {
                                matrix.insert(usize::from(read), write);
                            }
                        });
                    }
                }
                matrix
            }
            _ => return None,
        })
    }

    /// The threads of two events, where both are of threads.
    fn both_threads(&self, i: usize, j: usize) -> Option<(ThreadId, ThreadId)> {
        match (self.events[i].owner, self.events[j].owner) {
            (Owner::Thread(left), Owner::Thread(right)) => Some((left, right)),
            _ => None,
        }
    }
}

/// What of a stored value lies in a piece of its access.
fn part_of(stored: &Symbolic<u16>, piece: Piece) -> Symbolic<u16> {
    if piece.alone { stored.clone() } else { stored.clone().part(piece.before, piece.bytes) }
}

impl Event {
    /// The thread of the test whose instruction this is.
    pub(crate) fn thread(&self) -> Option<ThreadId> {
        match self.owner {
            Owner::Thread(thread) | Owner::Company(thread, _) => Some(thread),
            Owner::Initial | Owner::Final => None,
        }
    }

    /// An event that does nothing yet; `here` is its number.
    fn new(owner: Owner, instruction: Option<u16>, here: u16, place: Option<Placement>) -> Event {
        Event {
            owner,
            instruction,
            tags: Tags::default(),
            storage: None,
            reference: None,
            block: None,
            stored: None,
            extent: None,
            operation: here,
            vector: here,
            write_half: None,
            place,
        }
    }

    fn access(&mut self, test: &Test, memory: &Memory, host: bool) {
        self.reference = Some(memory.location);
        self.block = (memory.class == StorageClass::Workgroup).then(|| test.storage_of(memory.location));
        self.extent = Some(memory.extent);
        self.tags.classes = 1 << memory.class.index();
        if host {
            // A host has no private accesses: its language orders them.
            self.tags.add(Tags::NONPRIV);
            let property = |name: LocationId| test.location(name).noncoherent;
            if property(memory.location) || property(memory.extent.storage) {
                self.tags.add(Tags::NONCOHERENT);
            }
        }
    }

    fn fence(&mut self, scope: Scope, semantics: &Semantics) {
        self.tags.add_scope(scope);
        if semantics.order != Order::Relaxed {
            self.tags.add(Tags::F);
        }
        self.tags.add_release(semantics);
        self.tags.add_acquire(semantics);
    }
}

impl Tags {
    fn read_access(&mut self, access: Access) {
        match access {
            Access::Private => {}
            Access::NonPrivate => self.add(Tags::NONPRIV),
            Access::Coherent { scope } => {
                self.add(Tags::NONPRIV | Tags::VIS);
                self.add_scope(scope);
            }
            Access::Atomic { scope, semantics } => {
                self.add(Tags::NONPRIV | Tags::VIS | Tags::ATOM);
                self.add_scope(scope);
                self.add_acquire(&semantics);
            }
        }
    }

    fn write_access(&mut self, access: Access) {
        match access {
            Access::Private => {}
            Access::NonPrivate => self.add(Tags::NONPRIV),
            Access::Coherent { scope } => {
                self.add(Tags::NONPRIV | Tags::AV);
                self.add_scope(scope);
            }
            Access::Atomic { scope, semantics } => {
                self.add(Tags::NONPRIV | Tags::AV | Tags::ATOM);
                self.add_scope(scope);
                self.add_release(&semantics);
            }
        }
    }
}
