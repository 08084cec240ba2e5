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
    assert_eq!(case_count, 89);
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
