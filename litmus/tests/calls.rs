//! API calls: the relations derived from them, and the refusal of invalid ones with code and position.
#![expect(clippy::unwrap_used, reason = "a failure is the report")]

use litmus::{InstructionKind, SystemOperation, Test, ThreadId};

/// Returns a test with these columns, one row per cell.
fn text(columns: &[&[&str]]) -> String {
    let rows = columns.iter().map(|column| column.len()).max().unwrap();
    let row = |row: usize| {
        let cells = columns.iter().map(|column| column.get(row).copied().unwrap_or_default());
        cells.collect::<Vec<_>>().join(" | ")
    };
    let rows: Vec<String> = (0..rows).map(row).collect();
    format!("VULKAN T\n{{ buffer u32 x [host] = 0; y = 0; }}\n{} ;\nexists (x == 0)\n", rows.join(" ;\n"))
}

/// Formats the derived relations: `P0<P1` for each pair, then the operations inserted into each thread.
fn relations_text(test: &Test) -> String {
    let point = |point: litmus::SyncPoint| {
        let number = test.thread(point.thread).number;
        point.instruction.map_or(format!("P{number}"), |at| format!("P{number}.{at}"))
    };
    let mut pairs: Vec<String> =
        test.system_sync.iter().map(|pair| format!("{}<{}", point(pair.from), point(pair.to))).collect();
    pairs.sort();
    let mut text = pairs.join(" ");
    for id in (0..test.threads.len()).map(|number| ThreadId(number as u16)) {
        let words: Vec<String> = test
            .thread(id)
            .instructions
            .iter()
            .map(|instruction| match &instruction.kind {
                InstructionKind::System(operation) => match operation {
                    SystemOperation::Available(mask) | SystemOperation::Visible(mask) => mask
                        .names()
                        .fold(operation.keyword().to_owned(), |text, word| format!("{text}.{word}")),
                    SystemOperation::Submit(threads) | SystemOperation::Wait(threads) => {
                        let numbers =
                            threads.iter().map(|thread| format!(" P{}", test.thread(*thread).number));
                        format!("{}{}", operation.keyword(), numbers.collect::<String>())
                    }
                    _ => operation.keyword().to_owned(),
                },
                _ => "_".to_owned(),
            })
            .collect();
        text += &format!("; {}", words.join(" "));
    }
    text
}

const P0: &str = "P0@sg 0, wg 0, qf 0";
const P1: &str = "P1@sg 0, wg 1, qf 0";
const P1_FAR: &str = "P1@sg 0, wg 1, qf 1";
const P2: &str = "P2@sg 0, wg 2, qf 0";
const P1_NEXT: &str = "P1@sg 0, wg 1, qf 0, q 1";
const P2_FAR: &str = "P2@sg 0, wg 2, qf 1";
const ST: &str = "st.sc0 x, 1";
const LD: &str = "ld.sc0 r0, x";

/// The cases of `calls.txt`, which describes their format.
#[test]
fn calls_are_derived_or_refused() {
    let mut case_count = 0;
    for case in include_str!("calls.txt").split("\n\n") {
        let lines: Vec<&str> = case.lines().filter(|line| !line.starts_with('#')).collect();
        let Some((expected, columns)) = lines.split_last() else { continue };
        let columns: Vec<Vec<&str>> = columns.iter().map(|column| column.split(" | ").collect()).collect();
        let columns: Vec<&[&str]> = columns.iter().map(Vec::as_slice).collect();
        let text = text(&columns);
        match expected.strip_prefix("error ").and_then(|error| error.split_once(" at ")) {
            Some((code, words)) => assert_refused(&text, code, words),
            None => {
                let test = litmus::parse(&text, "T")
                    .map_err(|errors| format!("{:?}\n{text}", errors.messages()))
                    .unwrap();
                assert_eq!(Some(relations_text(&test).as_str()), expected.strip_prefix("derives "), "{text}");
            }
        }
        case_count += 1;
    }
    assert_eq!(case_count, 86);
}

/// Requires one error with this code, whose label begins at these words.
fn assert_refused(text: &str, code: &str, words: &str) {
    let errors = litmus::parse(text, "T").map(|test| relations_text(&test)).unwrap_err();
    let found: Vec<_> =
        errors.messages().into_iter().map(|message| (message.code, message.line, message.column)).collect();
    let places: Vec<(u32, u32)> = (1..)
        .zip(text.lines())
        .flat_map(|(number, line)| line.match_indices(words).map(move |(at, _)| (number, at as u32 + 1)))
        .collect();
    let expected = format!("litmus::call::{code}");
    assert!(
        found.len() == 1 && found[0].0 == expected && places.contains(&(found[0].1, found[0].2)),
        "{found:?}, not {expected} at {places:?}\n{text}"
    );
}

/// Exclusive memory is owned by one family at a time, with or without calls.
#[test]
fn exclusive_memory_is_accessed_only_by_its_owner() {
    let read = |declared: &str, first: &str, second: &str| {
        let text =
            format!("VULKAN T\n{{ {declared} }}\n{first} | {second} ;\n{ST} | {LD} ;\nexists (x == 0)\n");
        let codes = |errors: litmus::ParseErrors| {
            let messages = errors.messages().into_iter();
            messages.map(|it| (it.code, it.line, it.column)).collect::<Vec<_>>()
        };
        litmus::parse(&text, "T").map(|_| ()).map_err(codes)
    };
    let refused = Err(vec![("litmus::call::not_owned".to_owned(), 4, 15)]);
    assert_eq!(read("x [exclusive] = 0;", P0, P1_FAR), refused);
    assert_eq!(read("buffer u32 x [host, exclusive] = 0;", P0, P1_FAR), refused);
    assert_eq!(read("y [exclusive] = 0; x aliases y;", P0, P1_FAR), refused);
    assert_eq!(read("x [exclusive] = 0;", P0, P1_NEXT), Ok(()));
    assert_eq!(read("x = 0; y [exclusive] = 0;", P0, P1_FAR), Ok(()));
}

/// The schedule has the calls in the order of the text. It is `None` for a test that was modified after
/// parsing.
#[test]
fn schedules_have_the_calls_in_order() {
    let text = text(&[
        &[P0, ST, "barrier compute.transfer:shader_write -> all:memory_read", "signal t 3"],
        &[P1, LD],
        &[P2_FAR, "wait t 2", LD],
    ]);
    let mut test = litmus::parse(&text, "T").unwrap();
    let schedule = test.schedule().unwrap();
    let queues: Vec<_> = schedule.queues.iter().map(|queue| (queue.family, queue.number)).collect();
    assert_eq!(queues, [(0, 0), (1, 0)]);
    let [own, far] = schedule.queues.as_slice() else { panic!("{schedule:?}") };
    let litmus::ScheduledItem::Barrier(scopes) = &own.items[1] else { panic!("{own:?}") };
    let words = |(stages, accesses): (litmus::StageMask, litmus::AccessMask)| {
        (stages.names().collect::<Vec<_>>(), accesses.names().collect::<Vec<_>>())
    };
    assert_eq!(words(scopes.source), (vec!["compute", "transfer"], vec!["shader_write"]));
    assert_eq!(words(scopes.target), (vec!["all"], vec!["memory_read"]));
    assert_eq!(own.items[0], litmus::ScheduledItem::Dispatch(ThreadId(0)));
    assert_eq!(own.items[2], litmus::ScheduledItem::Signal("t".to_owned(), Some(3)));
    assert_eq!(far.items[0], litmus::ScheduledItem::Wait("t".to_owned(), Some(2)));
    assert_eq!(litmus::parse(&litmus::print(&test), "T").unwrap(), test);
    test.system_sync.clear();
    assert_eq!(test.schedule(), None);
}

/// Host calls keep their positions, also in a twin with additional loads.
#[test]
fn host_calls_keep_their_positions() {
    let text = text(&[
        &["P0@host", ST, "signal t 1", "wait t 2", "wait t 3", "signal t 4", LD, "signal t 5"],
        &[P1, "wait t 1", LD, "signal t 2", "signal t 3"],
        &[P2, "wait t 4", LD],
    ]);
    let test = litmus::parse(&text, "T").unwrap();
    let waits = |test: &Test| -> Vec<(usize, bool, u32)> {
        let hosts = &test.schedule().unwrap().hosts;
        hosts.iter().map(|call| (call.at, call.waits, call.value.unwrap())).collect()
    };
    // The instructions are the store, the two derived waits, and the load.
    let expected = [(1, false, 1), (1, true, 2), (2, true, 3), (3, false, 4), (4, false, 5)];
    assert_eq!(waits(&test), expected);
    let mut twin = test.clone();
    let read = twin.threads[0].instructions.last().unwrap().clone();
    let early = InstructionKind::System(SystemOperation::Flush(Vec::new()));
    twin.threads[0].instructions.insert(0, litmus::Instruction { kind: early, ..read.clone() });
    twin.copy_calls_from(&test);
    assert_eq!(waits(&twin), expected.map(|(at, waits, value)| (at + 1, waits, value)));
}

/// A xorshift generator.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

/// An item of a queue for the independent derivation: dispatches by index, barriers by the stages of their
/// scopes, semaphores, and events.
#[derive(Clone, Copy)]
enum Node {
    Dispatch(usize),
    Barrier(u8, u8),
    Signal(usize),
    Wait(usize),
    Set(u8, usize),
    Await(u8, usize),
}

/// Stage bits: compute, transfer, vertex, fragment. A source `fragment` includes `vertex`, a target `vertex`
/// includes `fragment`.
const STAGES: [(&str, u8, u8); 6] = [
    ("compute", 1, 1),
    ("transfer", 2, 2),
    ("vertex", 4, 12),
    ("fragment", 12, 8),
    ("all", 15, 15),
    ("none", 0, 0),
];

/// Returns random columns, and the nodes of each queue in order.
fn program(random: &mut Random) -> (Vec<Vec<String>>, [Vec<Node>; 3]) {
    let threads = 2 + random.below(3) as usize;
    let semaphores = random.below(3) as usize;
    // The column of each signal and wait. A wait has a later column than its signal, so every wait ends.
    let places: Vec<(usize, usize)> = (0..semaphores)
        .map(|_| {
            let signal = random.below(threads as u64 - 1) as usize;
            (signal, signal + 1 + random.below((threads - signal - 1) as u64) as usize)
        })
        .collect();
    let mut queues: [Vec<Node>; 3] = Default::default();
    // Events that are set but not yet awaited, by queue, with their target stages.
    let mut open: [Vec<(usize, u8)>; 3] = Default::default();
    let mut events = 0;
    let mut columns = Vec::new();
    for thread in 0..threads {
        // The third queue is a second queue of the first family.
        let family = [0, 0, 1, 1, 2][random.below(5) as usize];
        let place = ["qf 0", "qf 1", "qf 0, q 1"][family];
        let mut column = vec![format!("P{thread}@sg 0, wg {thread}, {place}")];
        let awaited = |column: &mut Vec<String>, queue: &mut Vec<Node>, open: &mut Vec<(usize, u8)>| {
            if let Some((event, target)) = open.pop() {
                column.push(format!("await e{event}"));
                queue.push(Node::Await(target, event));
            }
        };
        let barrier = |column: &mut Vec<String>, queue: &mut Vec<Node>, random: &mut Random| {
            let (source, target) = (STAGES[random.below(6) as usize], STAGES[random.below(6) as usize]);
            column.push(format!("barrier {} -> {}", source.0, target.0));
            queue.push(Node::Barrier(source.1, target.2));
        };
        if random.below(2) == 0 {
            awaited(&mut column, &mut queues[family], &mut open[family]);
        }
        for _ in 0..random.below(2) {
            barrier(&mut column, &mut queues[family], random);
        }
        for (number, _) in places.iter().enumerate().filter(|(_, (_, wait))| *wait == thread) {
            column.push(format!("wait s{number}"));
            queues[family].push(Node::Wait(number));
        }
        column.push("st.sc0 x, 1".to_owned());
        queues[family].push(Node::Dispatch(thread));
        for _ in 0..random.below(3) {
            barrier(&mut column, &mut queues[family], random);
        }
        if random.below(3) == 0 {
            let (source, target) = (STAGES[random.below(6) as usize], STAGES[random.below(6) as usize]);
            column.push(format!("set e{events} {} -> {}", source.0, target.0));
            queues[family].push(Node::Set(source.1, events));
            open[family].push((events, target.2));
            events += 1;
        }
        if random.below(6) == 0 {
            barrier(&mut column, &mut queues[family], random);
            awaited(&mut column, &mut queues[family], &mut open[family]);
        }
        for (number, _) in places.iter().enumerate().filter(|(_, (signal, _))| *signal == thread) {
            column.push(format!("signal s{number}"));
            queues[family].push(Node::Signal(number));
        }
        columns.push(column);
    }
    (columns, queues)
}

/// Computes the order of dispatches by reachability over all nodes.
fn reached(queues: &[Vec<Node>; 3], threads: usize) -> Vec<bool> {
    let nodes: Vec<(usize, usize, Node)> = queues
        .iter()
        .enumerate()
        .flat_map(|(queue, nodes)| nodes.iter().enumerate().map(move |(at, node)| (queue, at, *node)))
        .collect();
    let leads = |from: &(usize, usize, Node), to: &(usize, usize, Node)| {
        let later = from.0 == to.0 && from.1 < to.1;
        match (from.2, to.2) {
            (Node::Signal(signal), Node::Wait(wait)) => signal == wait,
            (Node::Set(_, set), Node::Await(_, awaited)) => set == awaited,
            (Node::Dispatch(_), Node::Barrier(source, _) | Node::Set(source, _)) => later && source & 1 != 0,
            (Node::Barrier(_, target) | Node::Await(target, _), Node::Dispatch(_)) => {
                later && target & 1 != 0
            }
            (
                Node::Barrier(_, target) | Node::Await(target, _),
                Node::Barrier(source, _) | Node::Set(source, _),
            ) => later && target & source != 0,
            (Node::Dispatch(_) | Node::Wait(_), Node::Signal(_)) => later,
            (Node::Wait(_), Node::Dispatch(_)) => later,
            _ => false,
        }
    };
    let count = nodes.len();
    let mut all: Vec<bool> =
        (0..count * count).map(|at| leads(&nodes[at / count], &nodes[at % count])).collect();
    close(&mut all, count);
    let mut dispatches = vec![false; threads * threads];
    for (from, (_, _, one)) in nodes.iter().enumerate() {
        for (to, (_, _, other)) in nodes.iter().enumerate() {
            if let (Node::Dispatch(one), Node::Dispatch(other)) = (one, other) {
                dispatches[one * threads + other] = all[from * count + to];
            }
        }
    }
    dispatches
}

fn close(all: &mut [bool], count: usize) {
    for middle in 0..count {
        for from in 0..count {
            for to in 0..count {
                all[from * count + to] |= all[from * count + middle] && all[middle * count + to];
            }
        }
    }
}

/// The derived order equals reachability, computed independently.
#[test]
fn random_programs_have_the_order_of_reachability() {
    let mut random = Random(0x1234_5678_9abc_def1);
    let (mut read, mut pairs) = (0, 0);
    for _ in 0..20_000 {
        let (columns, queues) = program(&mut random);
        let columns: Vec<Vec<&str>> =
            columns.iter().map(|column| column.iter().map(String::as_str).collect()).collect();
        let columns: Vec<&[&str]> = columns.iter().map(Vec::as_slice).collect();
        let (text, threads) = (text(&columns), columns.len());
        let test = match litmus::parse(&text, "T") {
            Ok(test) => test,
            Err(errors) => {
                let unsettled = ["litmus::call::different_masks", "litmus::call::broken_chain"];
                assert!(
                    errors.messages().iter().all(|it| unsettled.contains(&it.code.as_str())),
                    "{errors:?}\n{text}"
                );
                continue;
            }
        };
        let mut derived = vec![false; threads * threads];
        for pair in &test.system_sync {
            derived[usize::from(pair.from.thread.0) * threads + usize::from(pair.to.thread.0)] = true;
        }
        close(&mut derived, threads);
        assert_eq!(derived, reached(&queues, threads), "{text}");
        (read, pairs) = (read + 1, pairs + derived.iter().filter(|pair| **pair).count());
    }
    assert!(read > 15_000 && pairs > 10_000, "{read} read, {pairs} pairs");
}

/// Returns columns in which both queues repeatedly wait for each other's signals: the number of paths to the
/// last wait doubles in each round.
fn ladder(turns: usize) -> [Vec<String>; 2] {
    [(P0, 1), (P1_FAR, 2)].map(|(head, value)| {
        let mut column = vec![head.to_owned(), ST.to_owned(), format!("signal t0 {value}")];
        for turn in 0..turns {
            column.push(format!("wait t{turn} 1"));
            column.push(format!("signal t{} {value}", turn + 1));
        }
        column
    })
}

/// The predecessors of a wait are computed once, however many paths lead to it. The number of calls is
/// bounded.
#[test]
fn many_paths_to_a_wait_cost_nothing() {
    let read = |turns: usize| {
        let columns = ladder(turns);
        let columns = columns.each_ref().map(|column| column.iter().map(String::as_str).collect::<Vec<_>>());
        litmus::parse(&text(&[&columns[0], &columns[1]]), "ladder")
    };
    assert_eq!(read(31).unwrap().threads.len(), 2);
    let errors = read(32).unwrap_err();
    assert!(errors.to_string().contains("mistake"), "{errors}");
    assert!(format!("{errors:?}").contains("calls of the API"), "{errors:?}");
}
