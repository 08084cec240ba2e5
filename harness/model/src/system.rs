//! Events and orders of the host, the API, shader calls and interlocked sections.

use litmus::{
    AccessMask, Flow, InstructionKind, InterlockEnd, InterlockOrder, LocationId, SystemOperation, Test,
    ThreadId, ThreadPlace,
};

use crate::skeleton::{Event, Owner, Tags};

/// Limit of fragments with unordered sections: all of their orders are enumerated.
const MAX_UNORDERED: usize = 5;

/// The position of such an instruction among the events of an execution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InstructionMark {
    pub(crate) thread: ThreadId,
    /// Index into the thread's instructions.
    pub(crate) instruction: u16,
    /// The first event after the instruction; a wait's own operation follows the events it waits for.
    pub(crate) next: u16,
}

/// Returns the tags of the events of an API operation, in execution order.
pub(crate) fn operation_tags(operation: &SystemOperation) -> &'static [u64] {
    match operation {
        // An operation that names no access publishes nothing, and does not extend a chain.
        SystemOperation::Available(AccessMask::NONE) | SystemOperation::Visible(AccessMask::NONE) => &[0],
        SystemOperation::Available(mask) if mask.intersects(AccessMask::HOST_WRITE) => {
            &[Tags::DOMDEVICE, Tags::AVDEVICE]
        }
        SystemOperation::AvailableToDevice | SystemOperation::Available(_) => &[Tags::AVDEVICE],
        SystemOperation::Visible(mask)
            if mask.intersects(AccessMask::HOST_READ.with(AccessMask::HOST_WRITE)) =>
        {
            &[Tags::VISDEVICE, Tags::DOMHOST]
        }
        SystemOperation::VisibleFromDevice | SystemOperation::Visible(_) => &[Tags::VISDEVICE],
        SystemOperation::Flush(_) => &[Tags::AVHOST],
        SystemOperation::Invalidate(_) => &[Tags::VISHOST],
        SystemOperation::Submit(_) => &[Tags::DOMDEVICE, Tags::VISDEVICE],
        // The first access scope of a fence signal holds every access of the device (`#synchronization-fences-signaling`).
        SystemOperation::Wait(_) => &[Tags::AVDEVICE],
    }
}

/// Returns the instruction of an event, if the event belongs to a thread.
fn instruction_of<'t>(test: &'t Test, event: &Event) -> Option<&'t InstructionKind> {
    let (Owner::Thread(thread), Some(instruction)) = (event.owner, event.instruction) else { return None };
    test.thread(thread).instructions.get(usize::from(instruction)).map(|found| &found.kind)
}

fn named_threads(kind: &InstructionKind) -> &[ThreadId] {
    match kind {
        InstructionKind::System(SystemOperation::Submit(threads) | SystemOperation::Wait(threads))
        | InstructionKind::ShaderCall(threads) => threads,
        _ => &[],
    }
}

/// Pairs of events: the earlier one, the later one.
type EventPairs = Vec<(u16, u16)>;

/// Returns the events of the instructions of a thread.
pub(crate) fn thread_events(events: &[Event], thread: ThreadId) -> impl Iterator<Item = u16> + '_ {
    events
        .iter()
        .enumerate()
        .filter(move |(_, event)| event.owner == Owner::Thread(thread))
        .map(|(index, _)| index as u16)
}

/// Orders every event of `caller` before `mark` before every event of `others`, or these before every event
/// after `mark`.
fn order_around_mark<'e>(
    events: &'e [Event],
    mark: &'e InstructionMark,
    others: &'e [ThreadId],
    entering: bool,
) -> impl Iterator<Item = (u16, u16)> + 'e {
    thread_events(events, mark.thread).filter(move |own| (*own < mark.next) == entering).flat_map(
        move |own| {
            others.iter().flat_map(move |other| {
                thread_events(events, *other)
                    .map(move |event| if entering { (own, event) } else { (event, own) })
            })
        },
    )
}

/// Returns the system-synchronizes-with pairs of submissions and waits.
pub(crate) fn submission_order(test: &Test, events: &[Event], marks: &[InstructionMark]) -> EventPairs {
    let mut pairs = EventPairs::new();
    for mark in marks {
        let kind = &test.thread(mark.thread).instructions[usize::from(mark.instruction)].kind;
        match kind {
            InstructionKind::System(SystemOperation::Submit(threads)) => {
                pairs.extend(order_around_mark(events, mark, threads, true));
            }
            InstructionKind::System(SystemOperation::Wait(threads)) => {
                pairs.extend(order_around_mark(events, mark, threads, false));
            }
            _ => {}
        }
    }
    pairs
}

/// Shader-call order between different invocations (`#shader-call-order`): entries and exits, closed.
pub(crate) fn shader_call_order(test: &Test, events: &[Event], marks: &[InstructionMark]) -> EventPairs {
    let mut pairs = EventPairs::new();
    for mark in marks {
        let kind = &test.thread(mark.thread).instructions[usize::from(mark.instruction)].kind;
        if let InstructionKind::ShaderCall(threads) = kind {
            pairs.extend(order_around_mark(events, mark, threads, true));
            pairs.extend(order_around_mark(events, mark, threads, false));
        }
    }
    loop {
        // The transitive closure: joins pairs that meet, until a round finds no new pair.
        let longer: EventPairs = pairs
            .iter()
            .flat_map(|(from, middle)| {
                pairs.iter().filter(move |(start, _)| start == middle).map(move |(_, to)| (*from, *to))
            })
            .filter(|pair| !pairs.contains(pair))
            .collect();
        if longer.is_empty() {
            return pairs;
        }
        pairs.extend(longer);
        pairs.sort_unstable();
        pairs.dedup();
    }
}

/// Returns for each thread a number that its shader-call-related threads share (`#shader-call-related`).
pub(crate) fn shader_call_groups(test: &Test) -> Vec<usize> {
    let mut group: Vec<usize> = (0..test.threads.len()).collect();
    for (caller, thread) in test.threads.iter().enumerate() {
        for instruction in &thread.instructions {
            if let InstructionKind::ShaderCall(threads) = &instruction.kind {
                for callee in threads {
                    let (target, joined) = (group[caller], group[usize::from(callee.0)]);
                    // Relabels one of the two groups: a union without a tree, for few threads.
                    group.iter_mut().filter(|g| **g == joined).for_each(|g| *g = target);
                }
            }
        }
    }
    group
}

/// Returns the orders in which overlapping fragments may execute their sections, as sequences of threads.
///
/// Ordered sections follow the columns; unordered ones have every order. Threads without a section keep their
/// position.
pub(crate) fn interlock_orders(test: &Test) -> Vec<Vec<ThreadId>> {
    let columns: Vec<ThreadId> = (0..test.threads.len()).map(|index| ThreadId(index as u16)).collect();
    let mut orders = vec![columns];
    if test.interlock_order() != Some(InterlockOrder::Unordered) {
        return orders;
    }
    // Every exchange of two threads of one section, for all orders so far.
    for later in 1..test.threads.len() {
        for known in 0..orders.len() {
            for earlier in 0..later {
                let mut order = orders[known].clone();
                if have_overlapping_sections(test, order[earlier], order[later]) {
                    order.swap(earlier, later);
                    orders.push(order);
                }
            }
        }
    }
    orders
}

/// From the ends of interlocked sections to the begins of the same sections of threads that come later in this order.
pub(crate) fn interlock_order(test: &Test, events: &[Event], order: &[ThreadId]) -> EventPairs {
    let turn = |owner: Owner| match owner {
        Owner::Thread(thread) => order.iter().position(|other| *other == thread),
        _ => None,
    };
    let section = |index: usize| match instruction_of(test, &events[index]) {
        Some(InstructionKind::Interlock(interlock)) => Some((interlock, turn(events[index].owner))),
        _ => None,
    };
    let ends: Vec<_> = (0..events.len()).filter_map(|i| section(i).map(|found| (i as u16, found))).collect();
    let mut pairs = EventPairs::new();
    for (from, (left, before)) in &ends {
        for (to, (right, after)) in &ends {
            if left.end == InterlockEnd::End
                && right.end == InterlockEnd::Begin
                && left.section == right.section
                && before < after
            {
                pairs.push((*from, *to));
            }
        }
    }
    pairs
}

/// Returns true if two threads are fragments that overlap: they name a common interlocked section.
pub(crate) fn have_overlapping_sections(test: &Test, left: ThreadId, right: ThreadId) -> bool {
    let sections = |thread: ThreadId| {
        test.thread(thread).instructions.iter().filter_map(|instruction| match &instruction.kind {
            InstructionKind::Interlock(interlock) => Some(&interlock.section),
            _ => None,
        })
    };
    left == right || sections(left).any(|section| sections(right).any(|other| other == section))
}

/// Returns pairs of an access and an API operation that does not cover it, by access mask or ranges; in both
/// directions.
pub(crate) fn uncovered_pairs(test: &Test, events: &[Event]) -> EventPairs {
    let mut pairs = EventPairs::new();
    for (index, event) in events.iter().enumerate() {
        let Some(InstructionKind::System(operation)) = instruction_of(test, event) else { continue };
        for (other, access) in events.iter().enumerate() {
            let Some(extent) = access.extent else { continue };
            let host = matches!(access.owner, Owner::Thread(thread) if test.thread(thread).place == ThreadPlace::Host);
            let in_ranges = |ranges: &[LocationId]| {
                ranges.is_empty() || ranges.iter().any(|name| test.storage_of(*name) == extent.storage)
            };
            let covered = match operation {
                SystemOperation::Available(mask) => mask.covers_access(host, true),
                SystemOperation::Visible(mask) if access.owner == Owner::Final => {
                    mask.intersects(AccessMask::MEMORY_READ)
                }
                SystemOperation::Visible(mask) => mask.covers_access(host, access.tags.has(Tags::W)),
                SystemOperation::Flush(ranges) | SystemOperation::Invalidate(ranges) => in_ranges(ranges),
                SystemOperation::AvailableToDevice
                | SystemOperation::VisibleFromDevice
                | SystemOperation::Submit(_)
                | SystemOperation::Wait(_) => true,
            };
            if !covered {
                pairs.extend([(index as u16, other as u16), (other as u16, index as u16)]);
            }
        }
    }
    pairs
}

/// Returns the reason that the model does not define the test's host, call or section instructions; `None` if
/// it does.
pub(crate) fn refusal_reason(test: &Test) -> Option<&'static str> {
    let mut started: Vec<ThreadId> = Vec::new();
    for thread in &test.threads {
        let mut control = false;
        for instruction in &thread.instructions {
            let kind = &instruction.kind;
            control |=
                matches!(kind, InstructionKind::Flow(Flow::Label(_) | Flow::Goto(_) | Flow::Branch { .. }));
            let named = named_threads(kind);
            if control && !named.is_empty() {
                return Some("submissions, waits and shader calls after a branch or label");
            }
            // Several threads may wait for one.
            if matches!(kind, InstructionKind::System(SystemOperation::Wait(_))) {
                continue;
            }
            if named.iter().any(|other| started.contains(other)) {
                return Some("threads that are submitted or called twice");
            }
            started.extend(named);
        }
    }
    queue_family_refusal(test)
}

/// Shader calls stay within a queue family (VK-DOM-08), and fragments that overlap belong to one draw.
fn queue_family_refusal(test: &Test) -> Option<&'static str> {
    let family = |index: usize| match test.threads.get(index)?.place {
        ThreadPlace::Device(placement) => Some(placement.queue_family),
        ThreadPlace::Host => None,
    };
    let calls = shader_call_groups(test);
    for left in 0..test.threads.len() {
        for right in (0..left).filter(|right| family(left) != family(*right)) {
            if calls[left] == calls[right] {
                return Some("shader calls from one queue family into another");
            }
            if have_overlapping_sections(test, ThreadId(left as u16), ThreadId(right as u16)) {
                return Some("one interlock section in several queue families");
            }
        }
    }
    let fragments =
        (0..test.threads.len()).filter(|thread| test.first_section(ThreadId(*thread as u16)).is_some());
    // Each order of the sections is another event structure: five have 120 orders.
    if test.interlock_order() == Some(InterlockOrder::Unordered) && fragments.count() > MAX_UNORDERED {
        return Some("unordered sections of more than five fragments");
    }
    None
}

/// The features that a test uses, as bits; base sets and relations of unused features are removed from its plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TestFeatures(pub(crate) u16);

/// Each feature with the base sets and relations that are empty without it.
const FEATURE_BASES: [(TestFeatures, &[&str]); 8] = [
    (TestFeatures::HOSTS, &["HOST", "NONCOHERENT", "DOMDEVICE", "DOMHOST", "AVHOST", "VISHOST", "uncovered"]),
    (TestFeatures::PARTS, &["part", "partial"]),
    (TestFeatures::VECTORS, &["component"]),
    (TestFeatures::CALLS, &["CALL", "scall", "sco"]),
    (TestFeatures::INTERLOCK, &["FI", "sfi", "interlock"]),
    (TestFeatures::SPLIT_BARRIERS, &["ARRIVE", "WAIT", "syncsplit", "round"]),
    (TestFeatures::UNDEFINED, &["UW"]),
    (TestFeatures::SEQUENTIAL, &["SEQCST"]),
];

impl TestFeatures {
    /// Threads of the host, access masks.
    pub(crate) const HOSTS: TestFeatures = TestFeatures(1);
    /// Accesses to a part of a location.
    pub(crate) const PARTS: TestFeatures = TestFeatures(1 << 1);
    /// Accesses of several components.
    pub(crate) const VECTORS: TestFeatures = TestFeatures(1 << 2);
    /// Shader calls and their scope.
    pub(crate) const CALLS: TestFeatures = TestFeatures(1 << 3);
    /// Interlocked sections and their scope.
    pub(crate) const INTERLOCK: TestFeatures = TestFeatures(1 << 4);
    /// Halves of split barriers.
    pub(crate) const SPLIT_BARRIERS: TestFeatures = TestFeatures(1 << 5);
    /// Undefined initial values.
    pub(crate) const UNDEFINED: TestFeatures = TestFeatures(1 << 6);
    /// Sequentially consistent operations.
    pub(crate) const SEQUENTIAL: TestFeatures = TestFeatures(1 << 7);
    /// All features.
    pub(crate) const ALL: TestFeatures = TestFeatures(0xff);

    /// Adds a feature if the test uses it.
    pub(crate) fn add_if(&mut self, feature: TestFeatures, is_used: bool) {
        self.0 |= if is_used { feature.0 } else { 0 };
    }

    pub(crate) fn contains(self, feature: TestFeatures) -> bool {
        self.0 & feature.0 != 0
    }

    /// Returns the base sets and relations that are empty in every execution.
    pub fn absent_bases(self) -> impl Iterator<Item = &'static str> {
        let absent = FEATURE_BASES.into_iter().filter(move |(feature, _)| !self.contains(*feature));
        absent.flat_map(|(_, names)| names.iter().copied())
    }
}
