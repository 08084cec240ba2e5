//! Synchronization algorithms as families of tests, by the number of threads and rounds.

use std::time::{Duration, Instant};

use litmus::{Race, Test};
use model::{Budget, PredictOptions, predict_with_growing_bound};

use super::{format_duration, ratio, shipped_model};

/// Returns the rows of a program with these columns, each in a separate workgroup.
pub(super) fn format_program_table(columns: &[Vec<String>]) -> String {
    let length = columns.iter().map(Vec::len).max().unwrap_or(0);
    let heads = (0..columns.len()).map(|thread| format!("P{thread}@sg 0, wg {thread}, qf 0"));
    let row = |row: usize| {
        let cells: Vec<&str> =
            columns.iter().map(|column| column.get(row).map_or("", String::as_str)).collect();
        cells.join(" | ") + " ;\n"
    };
    heads.collect::<Vec<_>>().join(" | ") + " ;\n" + &(0..length).map(row).collect::<String>()
}

fn parse_program(init: &str, columns: &[Vec<String>], condition: &str) -> Test {
    let text =
        format!("VULKAN family\n{{ {init} }}\n{}exists ({condition})\n", format_program_table(columns));
    litmus::parse(&text, "family").unwrap()
}

fn split_lines(text: &str) -> Vec<String> {
    text.split("; ").map(str::to_owned).collect()
}

/// Threads that push to a stack by compare-exchange; two pushes never find the same top.
fn stack_test(threads: usize) -> Test {
    let column = |thread: usize| {
        split_lines(&format!(
            "LC00:; ld.atom.acq.dv.sc0.semsc0.semvis r0, top; st.nonpriv.sc0 next{thread}, r0; \
             rmw.atom.acq_rel.dv.sc0.semsc0.semav.semvis.cas r1, top, r0, {}; bne r1, r0, LC00",
            thread + 1
        ))
    };
    let init: String = (0..threads).map(|thread| format!("next{thread} = 0; ")).collect();
    let columns: Vec<Vec<String>> = (0..threads).map(column).collect();
    parse_program(&format!("top = 0; {init}"), &columns, "next1 == next0")
}

/// Threads that pass sense-reversing barriers; each then reads what its neighbour wrote before.
fn barrier_test(threads: usize, rounds: usize) -> Test {
    let column = |thread: usize| {
        let round = |round: usize| {
            let (sense, last, next) = (1 - round % 2, threads - 1, (thread + 1) % threads);
            split_lines(&format!(
                "st.nonpriv.sc0 d{thread}{round}, 1; \
                 rmw.atom.acq_rel.dv.sc0.semsc0.semav.semvis.add r0, c, 1; beq r0, {last}, LC{round}0; \
                 LC{round}1:; ld.atom.acq.dv.sc0.semsc0.semvis r1, s; bne r1, {sense}, LC{round}1; \
                 goto LC{round}2; LC{round}0:; st.atom.dv.sc0 c, 0; \
                 st.atom.rel.dv.sc0.semsc0.semav s, {sense}; LC{round}2:; \
                 ld.nonpriv.sc0 r{}, d{next}{round}",
                2 + round
            ))
        };
        (0..rounds).flat_map(round).collect()
    };
    let all = || (0..threads).flat_map(|thread| (0..rounds).map(move |round| (thread, round)));
    let init: String = all().map(|(thread, round)| format!("d{thread}{round} = 0; ")).collect();
    let wrong: Vec<String> = all().map(|(thread, round)| format!("P{thread}:r{} == 0", 2 + round)).collect();
    let columns: Vec<Vec<String>> = (0..threads).map(column).collect();
    parse_program(&format!("c = 0; s = 0; {init}"), &columns, &wrong.join(" \\/ "))
}

/// Threads that increment a counter in an exchange lock.
fn exchange_lock_test(threads: usize, rounds: usize) -> Test {
    let column = |_| {
        let round = |round: usize| {
            split_lines(&format!(
                "LC{round}0:; rmw.atom.acq.dv.sc0.semsc0.semvis r0, l, 1; bne r0, 0, LC{round}0; \
                 ld.nonpriv.sc0 r1, x; add r1, r1, 1; st.nonpriv.sc0 x, r1; \
                 st.atom.rel.dv.sc0.semsc0.semav l, 0"
            ))
        };
        (0..rounds).flat_map(round).collect()
    };
    let columns: Vec<Vec<String>> = (0..threads).map(column).collect();
    parse_program("x = 0; l = 0;", &columns, &format!("x != {}", threads * rounds))
}

/// Prints the time to decide the race and the question of each family. All are race-free, and no question holds.
pub(super) fn print(yardstick: Duration) {
    println!("families under vulkan; cut off after 20 s");
    println!(
        "{:<24} {:>8} {:>7} {:>12} {:>12} {:<8}",
        "family", "threads", "rounds", "time", "/yardstick", "answered"
    );
    let model = shipped_model("vulkan");
    let stacks = [2, 3, 4].map(|threads| ("compare-exchange stack", threads, 1, stack_test(threads)));
    let barriers = [(2, 1), (2, 2), (3, 2), (4, 1), (4, 2)]
        .map(|(threads, rounds)| ("sense-reversing barrier", threads, rounds, barrier_test(threads, rounds)));
    let locks = [(2, 1), (2, 2), (4, 1), (4, 2)]
        .map(|(threads, rounds)| ("exchange lock", threads, rounds, exchange_lock_test(threads, rounds)));
    for (name, threads, rounds, test) in stacks.into_iter().chain(barriers).chain(locks) {
        model.prepare(&test).unwrap();
        let start = Instant::now();
        let stop = || start.elapsed() >= Duration::from_secs(20);
        let options = PredictOptions { budget: Budget::until(&stop), unroll: 1 };
        let found = predict_with_growing_bound(&test, &model, &options).unwrap();
        let time = start.elapsed();
        let answered = found.race == Race::Free && found.can_meet_condition == Some(false);
        println!(
            "{name:<24} {threads:>8} {rounds:>7} {:>12} {:>12.0} {answered:<8}",
            format_duration(time),
            ratio(time, yardstick)
        );
    }
    println!();
}
