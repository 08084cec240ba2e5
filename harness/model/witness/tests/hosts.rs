//! The order of hosts and queues: the derived relations compared with an interpretation of the calls.
#![expect(clippy::unwrap_used, reason = "tests")]

use witness::generate::generate_calls_program;
use witness::hosts::{ordered_by_streams, ordered_by_system_sync};

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
    let (mut failures, mut pairs, mut between_hosts) = (Vec::new(), 0, 0);
    for seed in first_seed()..first_seed() + programs() {
        let program = generate_calls_program(seed);
        let test = litmus::parse(&program.text, "random.litmus").unwrap();
        if test.schedule().is_none() {
            continue;
        }
        let (streams, relations) = (ordered_by_streams(&test), ordered_by_system_sync(&test));
        pairs += streams.len();
        between_hosts += streams.iter().filter(|(from, to)| from.is_host() && to.is_host()).count();
        let missing: Vec<_> = streams.difference(&relations).collect();
        let wrong: Vec<_> = relations.difference(&streams).collect();
        if !missing.is_empty() || !wrong.is_empty() {
            let derived = litmus::print(&test);
            failures.push(format!(
                "seed {seed}: not derived {missing:?}, derived without a reason {wrong:?}\n{}{derived}",
                program.text
            ));
        }
    }
    println!("{pairs} ordered pairs, {between_hosts} of them between hosts; {} failures", failures.len());
    if let Some(shortest) = failures.iter().min_by_key(|text| text.len()) {
        panic!("{} programs differ; the shortest:\n{shortest}", failures.len());
    }
    assert!(
        pairs as u64 > programs() / 2 && between_hosts > 0,
        "{pairs} pairs, {between_hosts} between hosts"
    );
}
