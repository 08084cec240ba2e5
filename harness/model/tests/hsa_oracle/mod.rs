//! A literal implementation of the HSA model.
//!
//! It guesses values, enumerates the coherent order of all loads and stores, and checks the definitions of
//! the chapter one by one. It shares only the syntax tree with the engine.

#![expect(clippy::unwrap_used, clippy::unreachable, reason = "helpers of tests")]

use std::collections::{BTreeMap, BTreeSet};

use litmus::{
    Access, AccessKind, Compute, Flow, InstructionKind, LabelId, LocationId, MemoryAccess, Observable,
    Operand, Order, Placement, RegisterId, RmwOperation, ScalarType, Scope, StorageClass, Test, ThreadId,
    ThreadPlace,
};

/// The verdict on a test.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct HsaAnswer {
    pub outcomes: BTreeSet<Vec<u64>>,
    pub racy: bool,
    /// True if an execution is undefined as a whole.
    pub is_program_undefined: bool,
}

#[derive(Clone, Debug)]
struct Event {
    thread: usize,
    place: Placement,
    location: Option<LocationId>,
    read: Option<u64>,
    written: Option<u64>,
    atomic: bool,
    /// Scope level from 0 (work-item) to 4 (system).
    level: u8,
    order: Order,
    /// The events of the thread on which this one depends.
    depends: BTreeSet<usize>,
    decisive: bool,
}

impl Event {
    fn is_special(&self) -> bool {
        self.atomic || self.location.is_none()
    }

    fn is_synchronizing(&self) -> bool {
        self.is_special() && self.order != Order::Relaxed
    }
}

struct ThreadRun {
    events: Vec<Event>,
    registers: Vec<u64>,
}

/// The thread makes one more load than there are guessed values.
struct NeedsGuess;

fn scope_level(scope: Scope, class: StorageClass) -> u8 {
    let level = match scope {
        Scope::Invocation => 0,
        Scope::Subgroup => 1,
        Scope::Workgroup => 2,
        Scope::QueueFamily | Scope::Device | Scope::ShaderCall | Scope::FragmentInterlock => 3,
        Scope::CrossDevice => 4,
    };
    if class == StorageClass::Workgroup { level.min(2) } else { level }
}

/// Runs a thread with guessed load values; `None` if an await waits for another value.
fn run_thread(test: &Test, id: usize, guesses: &[u64]) -> Result<Option<ThreadRun>, NeedsGuess> {
    type Sourced = (u64, BTreeSet<usize>);
    let thread = &test.threads[id];
    let ThreadPlace::Device(place) = thread.place else { return Ok(None) };
    let mut events: Vec<Event> = Vec::new();
    let mut guesses = guesses.iter();
    let mut registers: Vec<Sourced> = (0..thread.registers.len())
        .map(|r| (test.initial_register(ThreadId(id as u16), RegisterId(r as u16)).0, BTreeSet::new()))
        .collect();
    let mut regions: Vec<(usize, BTreeSet<usize>)> = Vec::new();
    let mut at = 0;
    while let Some(instruction) = thread.instructions.get(at) {
        at += 1;
        let value = |operand: &Operand, registers: &[Sourced]| match operand {
            Operand::Constant(constant) => (u64::from(*constant as u32), BTreeSet::new()),
            Operand::Register(register) => registers[usize::from(register.0)].clone(),
        };
        let position = |label: LabelId| thread.label_index(label).unwrap();
        let here = events.len();
        let mut event = Event {
            thread: id,
            place,
            location: None,
            read: None,
            written: None,
            atomic: false,
            level: 0,
            order: Order::Relaxed,
            depends: regions
                .iter()
                .filter(|(end, _)| at <= *end)
                .flat_map(|(_, sources)| sources.iter().copied())
                .collect(),
            decisive: false,
        };
        if let Some(register) = instruction.kind.access().and_then(|access| access.place.address) {
            for source in &registers[usize::from(register.0)].1 {
                event.depends.insert(*source);
                events[*source].decisive = true;
            }
        }
        let mut guess = || guesses.next().copied().ok_or(NeedsGuess);
        match &instruction.kind {
            InstructionKind::Access(MemoryAccess { place, kind, strength, .. }) => {
                event.location = Some(place.location);
                if let Access::Atomic { scope, semantics } = strength {
                    event.atomic = true;
                    event.level = scope_level(*scope, place.class);
                    event.order = semantics.order;
                }
                match kind {
                    AccessKind::Load(destinations) => {
                        let read_value = guess()?;
                        event.read = Some(read_value);
                        registers[usize::from(destinations.first().0)] = (read_value, BTreeSet::from([here]));
                        events.push(event);
                    }
                    AccessKind::Store(values) => {
                        let (stored, sources) = value(&values.first(), &registers);
                        event.written = Some(stored);
                        event.depends.extend(sources);
                        events.push(event);
                    }
                    AccessKind::Rmw { destination, operation } => {
                        let read_value = guess()?;
                        let (written, sources) = match operation {
                            RmwOperation::Exchange(operand) => value(operand, &registers),
                            RmwOperation::Fetch(operation, operand) => {
                                let (operand, sources) = value(operand, &registers);
                                let (seen, operand) = (litmus::Value(read_value), litmus::Value(operand));
                                (operation.apply(seen, operand, ScalarType::U32).0, sources)
                            }
                            RmwOperation::CompareExchange { .. } => {
                                unreachable!("no compare-exchange in HSA")
                            }
                        };
                        (event.read, event.written) = (Some(read_value), Some(written));
                        event.depends.extend(sources);
                        if let Some(destination) = destination {
                            registers[usize::from(destination.0)] = (read_value, BTreeSet::from([here]));
                        }
                        events.push(event);
                    }
                    AccessKind::Await { destination, value: awaited } => {
                        let (awaited, mut sources) = value(awaited, &registers);
                        if guess()? != awaited {
                            return Ok(None);
                        }
                        event.read = Some(awaited);
                        events.push(event);
                        sources.insert(here);
                        for source in &sources {
                            events[*source].decisive = true;
                        }
                        regions.push((usize::MAX, sources));
                        registers[usize::from(destination.0)] = (awaited, BTreeSet::from([here]));
                    }
                }
            }
            InstructionKind::Fence { scope, semantics } => {
                event.level = scope_level(*scope, StorageClass::Buffer);
                event.order = semantics.order;
                events.push(event);
            }
            InstructionKind::Compute(Compute::Arithmetic { destination, operation, left, right }) => {
                let ((left, mut sources), (right, more)) =
                    (value(left, &registers), value(right, &registers));
                sources.extend(more);
                let result = operation.apply(litmus::Value(left), litmus::Value(right), ScalarType::U32).0;
                registers[usize::from(destination.0)] = (result, sources);
            }
            InstructionKind::Compute(Compute::Move { destination, value: moved }) => {
                registers[usize::from(destination.0)] = value(moved, &registers);
            }
            InstructionKind::Compute(Compute::Compare { destination, relation, left, right }) => {
                let ((left, mut sources), (right, more)) =
                    (value(left, &registers), value(right, &registers));
                sources.extend(more);
                let holds = relation.holds(left as i64, right as i64);
                registers[usize::from(destination.0)] = (u64::from(holds), sources);
            }
            InstructionKind::Flow(Flow::BranchIf { condition, target }) => {
                let (taken, sources) = registers[usize::from(condition.0)].clone();
                for source in &sources {
                    events[*source].decisive = true;
                }
                let end = position(*target);
                regions.push((end, sources));
                if taken != 0 {
                    at = end;
                }
            }
            InstructionKind::Flow(Flow::Label(_)) => {}
            other => unreachable!("{other:?} in an HSA test"),
        }
    }
    Ok(Some(ThreadRun { events, registers: registers.into_iter().map(|(value, _)| value).collect() }))
}

fn collect_runs(test: &Test, id: usize, domain: &[u64], guesses: &mut Vec<u64>, found: &mut Vec<ThreadRun>) {
    match run_thread(test, id, guesses) {
        Ok(run) => found.extend(run),
        Err(NeedsGuess) => {
            for value in domain {
                guesses.push(*value);
                collect_runs(test, id, domain, guesses, found);
                guesses.pop();
            }
        }
    }
}

/// Returns every total order of the accesses of one location in which each load returns the last store before
/// it.
fn collect_orders(
    events: &[Event],
    rest: &[usize],
    current: u64,
    placed: &mut Vec<usize>,
    found: &mut Vec<Vec<usize>>,
) {
    if rest.is_empty() {
        found.push(placed.clone());
        return;
    }
    for (index, &next) in rest.iter().enumerate() {
        // Program order is preserved, and a load returns the current value.
        let early = rest.iter().any(|other| events[*other].thread == events[next].thread && *other < next);
        if early || events[next].read.is_some_and(|read| read != current) {
            continue;
        }
        let mut remaining = rest.to_vec();
        remaining.remove(index);
        placed.push(next);
        collect_orders(events, &remaining, events[next].written.unwrap_or(current), placed, found);
        placed.pop();
    }
}

#[derive(Clone)]
struct Relation(Vec<Vec<bool>>);

impl Relation {
    fn new(n: usize, member: impl Fn(usize, usize) -> bool) -> Relation {
        Relation((0..n).map(|i| (0..n).map(|j| member(i, j)).collect()).collect())
    }

    fn contains(&self, i: usize, j: usize) -> bool {
        self.0[i][j]
    }

    fn into_closure(mut self) -> Relation {
        let n = self.0.len();
        for k in 0..n {
            for i in 0..n {
                for j in 0..n {
                    self.0[i][j] |= self.0[i][k] && self.0[k][j];
                }
            }
        }
        self
    }

    fn is_acyclic(&self) -> bool {
        let n = self.0.len();
        let closure = self.clone().into_closure();
        (0..n).all(|i| !closure.contains(i, i))
    }
}

fn are_matching(x: &Event, y: &Event) -> bool {
    let same = match x.level.min(y.level) {
        0 => false,
        1 => x.place == y.place,
        2 => (x.place.queue_family, x.place.workgroup) == (y.place.queue_family, y.place.workgroup),
        3 => x.place.queue_family == y.place.queue_family,
        _ => true,
    };
    x.thread == y.thread || x.is_special() && y.is_special() && same
}

/// Returns the verdict; `None` if there are more than `limit` candidates.
pub fn judge_test(test: &Test, domain: &[u64], limit: usize) -> Option<HsaAnswer> {
    let threads: Vec<Vec<ThreadRun>> = (0..test.threads.len())
        .map(|id| {
            let mut found = Vec::new();
            collect_runs(test, id, domain, &mut Vec::new(), &mut found);
            found
        })
        .collect();
    if threads.iter().map(Vec::len).try_fold(1usize, usize::checked_mul)? > limit {
        return None;
    }
    let mut answer = HsaAnswer::default();
    let mut chosen = vec![0; threads.len()];
    let total: usize = threads.iter().map(Vec::len).product();
    for number in 0..total {
        let mut rest = number;
        for (choice, runs) in chosen.iter_mut().zip(&threads) {
            *choice = rest % runs.len();
            rest /= runs.len();
        }
        let runs: Vec<&ThreadRun> =
            threads.iter().zip(&chosen).map(|(runs, choice)| &runs[*choice]).collect();
        let mut events: Vec<Event> = Vec::new();
        for run in &runs {
            let offset = events.len();
            events.extend(run.events.iter().map(|event| Event {
                depends: event.depends.iter().map(|source| source + offset).collect(),
                ..event.clone()
            }));
        }
        let mut coherent: Vec<BTreeMap<usize, usize>> = vec![BTreeMap::new()];
        let mut last: Vec<BTreeMap<LocationId, Option<usize>>> = vec![BTreeMap::new()];
        for index in 0..test.locations.len() {
            let location = LocationId(index as u16);
            let accesses: Vec<usize> =
                (0..events.len()).filter(|e| events[*e].location == Some(location)).collect();
            let mut found = Vec::new();
            collect_orders(
                &events,
                &accesses,
                test.initial_value(location, 0).0,
                &mut Vec::new(),
                &mut found,
            );
            let (mut next, mut next_last) = (Vec::new(), Vec::new());
            for (positions, stores) in coherent.iter().zip(&last) {
                for order in &found {
                    let mut positions = positions.clone();
                    positions.extend(order.iter().enumerate().map(|(position, event)| (*event, position)));
                    let mut stores = stores.clone();
                    let store = order.iter().rev().find(|event| events[**event].written.is_some());
                    stores.insert(location, store.copied());
                    next.push(positions);
                    next_last.push(stores);
                }
            }
            (coherent, last) = (next, next_last);
        }
        for (positions, stores) in coherent.iter().zip(&last) {
            judge_execution(test, &runs, &events, positions, stores, &mut answer);
        }
    }
    Some(answer)
}

/// Judges one execution: `positions` is the coherent order of each location, `stores` its last store.
fn judge_execution(
    test: &Test,
    runs: &[&ThreadRun],
    events: &[Event],
    positions: &BTreeMap<usize, usize>,
    stores: &BTreeMap<LocationId, Option<usize>>,
    answer: &mut HsaAnswer,
) {
    let n = events.len();
    let same_location =
        |x: usize, y: usize| events[x].location.is_some() && events[x].location == events[y].location;
    let coh = Relation::new(n, |x, y| same_location(x, y) && positions[&x] < positions[&y]);
    let po = Relation::new(n, |x, y| events[x].thread == events[y].thread && x < y);
    let packet = |x: usize, y: usize| {
        test.system_sync.iter().any(|sync| {
            usize::from(sync.from.thread.0) == events[x].thread
                && usize::from(sync.to.thread.0) == events[y].thread
        })
    };
    // 3.9.1 to 3.9.4.
    let publishes = |x: usize, a: usize| {
        events[a].written.is_some() && if events[x].location.is_none() { po.contains(x, a) } else { x == a }
    };
    let receives = |b: usize, y: usize| {
        events[b].read.is_some() && if events[y].location.is_none() { po.contains(b, y) } else { b == y }
    };
    let sso = |x: usize, y: usize| {
        events[x].is_special()
            && events[y].is_special()
            && events[x].order.releases()
            && events[y].order.acquires()
            && are_matching(&events[x], &events[y])
            && (0..n).any(|a| publishes(x, a) && (0..n).any(|b| receives(b, y) && coh.contains(a, b)))
    };
    let hhb = Relation::new(n, |x, y| po.contains(x, y) || packet(x, y) || sso(x, y)).into_closure();
    let ldo = |x: usize, y: usize| events[y].depends.contains(&x);
    let are_both = |x: usize, y: usize| {
        events[x].is_synchronizing() && events[y].is_synchronizing() && are_matching(&events[x], &events[y])
    };
    let consistent = (0..n).all(|x| !hhb.contains(x, x))
        && (0..n).all(|x| (0..n).all(|y| !(hhb.contains(x, y) && coh.contains(y, x))))
        && Relation::new(n, |x, y| ldo(x, y) || coh.contains(x, y)).is_acyclic()
        && Relation::new(n, |x, y| x != y && are_both(x, y) && (hhb.contains(x, y) || coh.contains(x, y)))
            .is_acyclic();
    if !consistent {
        return;
    }
    // 3.12.2 and 3.12.3.
    let conflict = |x: usize, y: usize| {
        x != y
            && same_location(x, y)
            && (events[x].written.is_some() || events[y].written.is_some())
            && (!events[x].atomic || !events[y].atomic || !are_matching(&events[x], &events[y]))
            && !hhb.contains(x, y)
            && !hhb.contains(y, x)
    };
    let source = |x: usize| {
        let before = (0..n).filter(|y| events[*y].written.is_some() && coh.contains(*y, x));
        events[x].read.and_then(|_| before.max_by_key(|y| positions[y]))
    };
    let mut undefined: Vec<bool> = (0..n)
        .map(|x| {
            (0..n).any(|y| {
                conflict(x, y)
                    && events[y].written.is_some()
                    && (events[x].written.is_some() || events[x].read.is_some())
            })
        })
        .collect();
    loop {
        let next: Vec<bool> = (0..n)
            .map(|x| {
                undefined[x]
                    || (0..n).any(|y| undefined[y] && ldo(y, x))
                    || source(x).is_some_and(|store| undefined[store])
            })
            .collect();
        if next == undefined {
            break;
        }
        undefined = next;
    }
    let observables = test.observables();
    let final_store = |location: &LocationId| stores.get(location).copied().flatten();
    answer.racy |= (0..n).any(|x| undefined[x] && events[x].read.is_some());
    answer.racy |= observables.iter().any(|observable| match observable {
        Observable::Location(location, _) => final_store(location).is_some_and(|store| undefined[store]),
        Observable::Register(..) => false,
    });
    answer.is_program_undefined |= (0..n).any(|x| undefined[x] && events[x].decisive);
    answer.outcomes.insert(
        observables
            .iter()
            .map(|observable| match observable {
                Observable::Register(thread, register) => {
                    runs[usize::from(thread.0)].registers[usize::from(register.0)]
                }
                Observable::Location(location, component) => {
                    let written = final_store(location).and_then(|store| events[store].written);
                    written.unwrap_or(test.initial_value(*location, *component).0)
                }
            })
            .collect(),
    );
}
