//! The order of hosts and queues: the derived relations compared with an interpretation of the calls.
#![expect(clippy::unwrap_used, reason = "tests")]

use litmus::{InstructionKind, SystemOperation};
use witness::hosts::{generate_hosts_program, ordered_by_streams, ordered_by_system_sync};

/// The number of random programs: `VK_LITMUS_WITNESS_PROGRAMS`, small by default.
fn programs() -> u64 {
    std::env::var("VK_LITMUS_WITNESS_PROGRAMS").map_or(300, |text| text.parse().unwrap())
}

/// The first seed, `VK_LITMUS_WITNESS_SEED`.
fn first_seed() -> u64 {
    std::env::var("VK_LITMUS_WITNESS_SEED").map_or(0, |text| text.parse().unwrap())
}

/// Checks that both derivations order the same pairs.
#[test]
fn hosts_and_queues_have_one_order() {
    let (mut failures, mut pairs, mut between_hosts, mut complete) = (Vec::new(), 0, 0, 0);
    for seed in first_seed()..first_seed() + programs() {
        let program = generate_hosts_program(seed);
        let test = litmus::parse(&program.text, "random.litmus").unwrap();
        if test.schedule().is_none() {
            continue;
        }
        let (streams, relations) = (ordered_by_streams(&test), ordered_by_system_sync(&test));
        pairs += streams.len();
        between_hosts += streams.iter().filter(|(from, to)| from.1.is_some() && to.1.is_some()).count();
        // A signal in a column that a host submits is not derived to follow earlier work of that host. A
        // missing order may report a race, but never a violation.
        let is_submit =
            |kind: &InstructionKind| matches!(kind, InstructionKind::System(SystemOperation::Submit(_)));
        let mut instructions = test.threads.iter().flat_map(|thread| &thread.instructions);
        let submits = instructions.any(|instruction| is_submit(&instruction.kind));
        complete += u64::from(!submits);
        let missing: Vec<_> = streams.difference(&relations).filter(|_| !submits).collect();
        let wrong: Vec<_> = relations.difference(&streams).collect();
        if !missing.is_empty() || !wrong.is_empty() {
            let derived = litmus::print(&test);
            failures.push(format!(
                "seed {seed}: not derived {missing:?}, derived without a reason {wrong:?}\n{}{derived}",
                program.text
            ));
        }
    }
    assert!(complete * 3 > programs(), "only {complete} programs are compared in both directions");
    println!("{pairs} ordered pairs, {between_hosts} of them between hosts; {} failures", failures.len());
    if let Some(shortest) = failures.iter().min_by_key(|text| text.len()) {
        panic!("{} programs differ; the shortest:\n{shortest}", failures.len());
    }
    assert!(
        pairs as u64 > programs() / 2 && between_hosts > 0,
        "{pairs} pairs, {between_hosts} between hosts"
    );
}
