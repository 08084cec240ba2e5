//! Performance targets of the engine as tables: the time from a parsed test to its prediction on one core,
//! compared with the naive enumerator and with a fixed loop in the same run, since machines differ and are
//! noisy.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints what it measures")]

use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use litmus::{AccessKind, Operand, Test};
use model::progress::{Fairness, PROGRESS_GUARANTEES, ProgressLimits, ProgressModel, check_termination};
use model::{Budget, Model, PredictOptions, answer_queries, naive, predict};

#[path = "figures/families.rs"]
mod families;

fn main() {
    // `cargo test --benches` passes `--test`: this program has no tests.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let only: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|o| name.contains(o.as_str()));
    let yardstick = measure_yardstick();
    println!("yardstick (10,000 dependent multiplications): {}\n", format_duration(yardstick));
    if let Some(id) = only.iter().find_map(|o| o.strip_prefix("profile:")) {
        let (test, model) = (corpus_test(id), shipped_model("vulkan"));
        let start = Instant::now();
        let mut times = 0;
        while start.elapsed() < Duration::from_secs(3) {
            black_box(predict(&test, &model, &NO_LIMIT).unwrap());
            times += 1;
        }
        // For a profiler that counts instructions.
        println!("{times} predictions of {id}");
        return;
    }
    if wanted("small") {
        print_small_tests(yardstick);
    }
    if wanted("peers") {
        print_peers(yardstick);
    }
    if wanted("large") {
        print_large_tests(yardstick);
    }
    if wanted("progress") {
        print_progress(yardstick);
    }
    if wanted("refute") {
        print_refutations(yardstick);
    }
    if wanted("locks") {
        print_locks(yardstick);
    }
    if wanted("growth") {
        print_growth(yardstick);
        families::print(yardstick);
    }
}

/// Returns a stop function with a limit of three seconds.
fn stop_after_three_seconds() -> impl Fn() -> bool + Sync {
    let since = Instant::now();
    move || since.elapsed() >= Duration::from_secs(3)
}

fn shipped_model(name: &str) -> Model {
    Model::shipped(name).unwrap().unwrap()
}

fn corpus_test(id: &str) -> Test {
    let entry = litmus::corpus::tests().into_iter().find(|entry| entry.id == *id).unwrap();
    litmus::parse(entry.text, &entry.id).unwrap()
}

/// Returns the median time of one call, over samples of at least 100 µs each.
fn measure_median(mut call: impl FnMut()) -> Duration {
    let start = Instant::now();
    call();
    let once = start.elapsed().max(Duration::from_nanos(50));
    let calls = (Duration::from_micros(200).as_nanos() / once.as_nanos()).clamp(1, 2000) as u32;
    let budget = Duration::from_millis(300);
    let mut samples = Vec::new();
    let begin = Instant::now();
    while samples.len() < 5 || (begin.elapsed() < budget && samples.len() < 401) {
        let start = Instant::now();
        for _ in 0..calls {
            call();
        }
        samples.push(start.elapsed() / calls);
        if once > Duration::from_secs(1) {
            break;
        }
    }
    samples.sort_unstable();
    samples[samples.len() / 2]
}

/// Returns the time for a fixed amount of work.
fn measure_yardstick() -> Duration {
    measure_median(|| {
        let mut x = black_box(0x9E37_79B9_7F4A_7C15_u64);
        for _ in 0..10_000 {
            x = x.wrapping_mul(0x2545_F491_4F6C_DD1D) ^ (x >> 29);
        }
        black_box(x);
    })
}

fn format_duration(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    match micros {
        m if m < 100.0 => format!("{m:.2} µs"),
        m if m < 100_000.0 => format!("{:.2} ms", m / 1e3),
        m => format!("{:.2} s", m / 1e6),
    }
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}

const NO_LIMIT: PredictOptions = PredictOptions { budget: Budget::UNLIMITED, unroll: 1 };

fn print_small_tests(yardstick: Duration) {
    println!(
        "{:<28} {:>12} {:>12} {:>14} {:>8}",
        "test (vulkan)", "predict", "/yardstick", "naive", "naive/"
    );
    let model = shipped_model("vulkan");
    for id in ["mp/MP+rlx-rlx", "mp/MP+rel-acq", "sb/SB+rlx-rlx", "isa2/ISA2+rel-acqrel-acq", "iriw/IRIW+rlx"]
    {
        let test = corpus_test(id);
        let time = measure_median(|| {
            black_box(predict(&test, &model, &PredictOptions::default()).unwrap());
        });
        let slow = measure_median(|| {
            black_box(naive::enumerate(&test, &model, 1, u64::MAX).unwrap());
        });
        println!(
            "{id:<28} {:>12} {:>12.2} {:>14} {:>8.0}",
            format_duration(time),
            ratio(time, yardstick),
            format_duration(slow),
            ratio(slow, time)
        );
    }
    println!();
}

/// Measures the time from a parsed test to a verdict on forward progress, for each progress model.
fn print_progress(yardstick: Duration) {
    let vulkan = shipped_model("vulkan");
    println!(
        "{:<28} {:>9} {:>12} {:>12} {:>12}",
        "progress (vulkan, weak)", "verdicts", "median", "worst", "/yardstick"
    );
    let mut sets: Vec<(&str, Vec<(Test, ProgressModel)>)> = Vec::new();
    let own = litmus::corpus::progress_tests().into_iter().flat_map(|entry| {
        let test = litmus::parse(entry.text, &entry.id).unwrap();
        PROGRESS_GUARANTEES.map(|(_, promise)| (test.clone(), ProgressModel::uniform(promise)))
    });
    sets.push(("own corpus", own.collect()));
    match std::env::var_os("VK_LITMUS_CORPORA") {
        None => println!("skipped: VK_LITMUS_CORPORA is not set, no peers' rows"),
        Some(corpora) => {
            let folder = PathBuf::from(corpora).join("dat3m");
            let rows = std::fs::read_to_string(folder.join("liveness.csv")).unwrap();
            let row = |line: &str| {
                let (path, rest) = line.split_once(',').unwrap();
                let name = rest.split(',').next().unwrap().strip_prefix("liveness-").unwrap();
                let text = std::fs::read_to_string(folder.join(path)).unwrap();
                let model = name.to_lowercase().replace('_', "-").parse().unwrap();
                (litmus::parse(&text, path).unwrap(), model)
            };
            sets.push(("rows of liveness.csv", rows.lines().skip(1).map(row).collect()));
        }
    }
    for (name, verdicts) in sets {
        let mut times: Vec<Duration> = verdicts
            .iter()
            .map(|(test, model)| {
                let ask = || {
                    let start = Instant::now();
                    black_box(
                        check_termination(test, &vulkan, model, Fairness::Weak, &ProgressLimits::default())
                            .unwrap(),
                    );
                    start.elapsed()
                };
                let mut times = [ask(), ask(), ask(), ask(), ask()];
                times.sort_unstable();
                times[2]
            })
            .collect();
        times.sort_unstable();
        let median = times[times.len() / 2];
        println!(
            "{name:<28} {:>9} {:>12} {:>12} {:>12.2}",
            times.len(),
            format_duration(median),
            format_duration(times[times.len() - 1]),
            ratio(median, yardstick)
        );
    }
    println!();
}

fn print_peers(yardstick: Duration) {
    let Some(folder) = std::env::var_os("VK_LITMUS_CORPORA").map(PathBuf::from) else {
        println!("peers' rows: skipped, VK_LITMUS_CORPORA is not set\n");
        return;
    };
    let mut total = Duration::ZERO;
    for (peer, chains, nochains) in
        [("dat3m", "dartagnan", "dartagnan-nochains"), ("khronos", "khronos-alloy", "khronos-alloy-nochains")]
    {
        let (with, without) = (shipped_model(chains), shipped_model(nochains));
        let table = std::fs::read_to_string(folder.join(peer).join("verdicts.csv")).unwrap();
        let mut times: Vec<(Duration, String)> = Vec::new();
        for line in table.lines().skip(1) {
            let (path, rest) = line.split_once(',').unwrap();
            let check = rest.split(',').next().unwrap();
            let text = std::fs::read_to_string(folder.join(peer).join(path)).unwrap();
            let mut test = litmus::parse(&text, path).unwrap();
            let model = if check.ends_with("nochains") { &without } else { &with };
            let time = if let Some(khronos) = &mut test.khronos {
                let index: usize = check.split('-').nth(1).unwrap().parse().unwrap();
                khronos.queries = vec![khronos.queries[index].clone()];
                measure_median_of_seven(|| {
                    black_box(answer_queries(&test, model, Some(model), &NO_LIMIT).unwrap());
                })
            } else {
                measure_median_of_seven(|| {
                    black_box(predict(&test, model, &NO_LIMIT).unwrap());
                })
            };
            times.push((time, format!("{check} {path}")));
        }
        times.sort();
        let sum: Duration = times.iter().map(|(time, _)| *time).sum();
        total += sum;
        println!(
            "{peer}: {} rows, {} together, median {}",
            times.len(),
            format_duration(sum),
            format_duration(times[times.len() / 2].0)
        );
        for (time, name) in times.iter().rev().take(8) {
            println!("    {:>12} {name}", format_duration(*time));
        }
    }
    println!("all peers' rows: {} ({:.0} yardsticks)\n", format_duration(total), ratio(total, yardstick));
}

fn measure_median_of_seven(mut call: impl FnMut()) -> Duration {
    call();
    let mut samples: Vec<Duration> = (0..7)
        .map(|_| {
            let start = Instant::now();
            call();
            start.elapsed()
        })
        .collect();
    samples.sort_unstable();
    samples[samples.len() / 2]
}

/// A deterministic random number generator.
struct Xorshift64(u64);

impl Xorshift64 {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

/// The kind of accesses in a generated test.
#[derive(Clone, Copy, PartialEq)]
enum AccessStyle {
    Relaxed,
    Synchronizing,
    Plain,
    Mixed,
}

/// Returns a test with `threads` threads in separate workgroups, with `accesses` accesses each to `locations`
/// locations.
fn generate_test(
    threads: usize,
    accesses: usize,
    locations: u64,
    writes: usize,
    style: AccessStyle,
    numbers: &mut Xorshift64,
) -> Test {
    let total = threads * accesses;
    let mut is_write: Vec<bool> = (0..total).map(|i| i < writes).collect();
    for i in (1..total).rev() {
        is_write.swap(i, numbers.below(i as u64 + 1) as usize);
    }
    let mut columns = vec![Vec::new(); threads];
    let mut value = 0;
    for (i, write) in is_write.iter().enumerate() {
        let thread = i % threads;
        let name = ["x", "y", "z", "u", "v", "w"][numbers.below(locations) as usize];
        let style = match style {
            AccessStyle::Mixed => [AccessStyle::Relaxed, AccessStyle::Synchronizing, AccessStyle::Plain]
                [numbers.below(3) as usize],
            style => style,
        };
        value += 1;
        let register = columns[thread].len();
        columns[thread].push(match (write, style) {
            (true, AccessStyle::Relaxed) => format!("st.atom.dv.sc0 {name}, {value}"),
            (true, AccessStyle::Synchronizing) => format!("st.atom.rel.dv.sc0.semsc0 {name}, {value}"),
            (true, _) => format!("st.av.dv.sc0 {name}, {value}"),
            (false, AccessStyle::Relaxed) => format!("ld.atom.dv.sc0 r{register}, {name}"),
            (false, AccessStyle::Synchronizing) => format!("ld.atom.acq.dv.sc0.semsc0 r{register}, {name}"),
            (false, _) => format!("ld.vis.dv.sc0 r{register}, {name}"),
        });
    }
    let header: Vec<String> = (0..threads).map(|t| format!("P{t}@sg 0, wg {t}, qf 0")).collect();
    let mut text = format!("VULKAN generated\n{{ x = 0; }}\n{} ;\n", header.join(" | "));
    for row in 0..accesses {
        let cells: Vec<&str> = columns.iter().map(|column| column[row].as_str()).collect();
        text.push_str(&format!("{} ;\n", cells.join(" | ")));
    }
    // The values of three reads together. Values that no such write stores make an outcome unlikely, as in
    // practical conditions.
    let mut terms: Vec<String> = Vec::new();
    for (thread, column) in columns.iter().enumerate() {
        for (register, cell) in column.iter().enumerate() {
            if cell.starts_with("ld") && terms.len() < 3 {
                terms.push(format!("P{thread}:r{register} == {}", numbers.below(value + 1)));
            }
        }
    }
    if !terms.is_empty() {
        text.push_str(&format!("exists ({})\n", terms.join(" /\\ ")));
    }
    litmus::parse(&text, "generated").unwrap()
}

fn print_large_tests(yardstick: Duration) {
    println!("four threads of five accesses, two locations, twelve writes; cut off after 3 s");
    println!(
        "{:<16} {:<14} {:>5} {:>12} {:>12} {:>12} {:>12} {:>8}",
        "model", "accesses", "tests", "median", "90th of 100", "worst", "/yardstick", "cut off"
    );
    for name in ["vulkan", "dartagnan", "khronos-alloy", "tso", "sc"] {
        let model = shipped_model(name);
        for (style, word, tests) in [
            (AccessStyle::Mixed, "mixed", 40),
            (AccessStyle::Relaxed, "relaxed", 10),
            (AccessStyle::Synchronizing, "synchronizing", 10),
            (AccessStyle::Plain, "plain", 10),
        ] {
            let mut numbers = Xorshift64(0x1234_5678_9ABC_DEF1);
            let mut times = Vec::new();
            let mut cut = 0;
            for _ in 0..tests {
                let test = generate_test(4, 5, 2, 12, style, &mut numbers);
                model.prepare(&test).unwrap();
                let stop = stop_after_three_seconds();
                let options = PredictOptions { budget: Budget::until(&stop), unroll: 1 };
                let start = Instant::now();
                let prediction = black_box(predict(&test, &model, &options).unwrap());
                times.push(start.elapsed());
                cut += usize::from(
                    prediction.can_miss_condition.is_none() && prediction.race == litmus::Race::Unknown,
                );
            }
            times.sort_unstable();
            let middle = times[times.len() / 2];
            println!(
                "{name:<16} {word:<14} {tests:>5} {:>12} {:>12} {:>12} {:>12.0} {cut:>8}",
                format_duration(middle),
                format_duration(times[times.len() * 9 / 10]),
                format_duration(times[times.len() - 1]),
                ratio(middle, yardstick)
            );
        }
    }
    println!();
}

/// Conditions in search spaces that are too large to list. Half of the reads must return values of one
/// interleaving, except for two reads, so the answer is no and hard to find.
fn print_refutations(yardstick: Duration) {
    println!("questions in large spaces, vulkan, half of the accesses writes; cut off after 60 s");
    println!(
        "{:>8} {:>9} {:>9} {:<14} {:>5} {:>12} {:>12} {:>12} {:>8}",
        "threads", "accesses", "locations", "kind", "tests", "median", "worst", "/yardstick", "cut off"
    );
    let model = shipped_model("vulkan");
    for (threads, accesses, locations) in [(8, 2, 2), (8, 4, 2), (6, 8, 2), (4, 16, 2), (4, 6, 4)] {
        for (style, word) in
            [(AccessStyle::Synchronizing, "synchronizing"), (AccessStyle::Relaxed, "relaxed")]
        {
            let mut numbers = Xorshift64(0x5EED_1234_ABCD_0001);
            let mut cut = 0;
            let mut times: Vec<Duration> = (0..5)
                .map(|_| {
                    let writes = threads * accesses / 2;
                    let mut test = generate_test(threads, accesses, locations, writes, style, &mut numbers);
                    set_hard_condition(&mut test, &mut numbers);
                    model.prepare(&test).unwrap();
                    let start = Instant::now();
                    let stop = || start.elapsed() >= Duration::from_secs(60);
                    let options = PredictOptions { budget: Budget::until(&stop), unroll: 1 };
                    let prediction = predict(&test, &model, &options).unwrap();
                    cut += usize::from(
                        prediction.race == litmus::Race::Unknown || prediction.can_meet_condition.is_none(),
                    );
                    start.elapsed()
                })
                .collect();
            times.sort_unstable();
            let [middle, worst] = [times[times.len() / 2], times[times.len() - 1]];
            println!(
                "{threads:>8} {accesses:>9} {locations:>9} {word:<14} {:>5} {:>12} {:>12} {:>12.0} {cut:>8}",
                times.len(),
                format_duration(middle),
                format_duration(worst),
                ratio(worst, yardstick)
            );
        }
    }
    println!();
}

/// Replaces the condition of a test of loads and stores as described in [`print_refutations`].
fn set_hard_condition(test: &mut Test, numbers: &mut Xorshift64) {
    let mut memory = vec![0; test.locations.len()];
    let mut next = vec![0; test.threads.len()];
    let mut terms: Vec<(String, usize, i64)> = Vec::new();
    let mut stored: Vec<(usize, i64)> = Vec::new();
    while next.iter().zip(&test.threads).any(|(next, thread)| *next < thread.instructions.len()) {
        let thread = numbers.below(next.len() as u64) as usize;
        let Some(instruction) = test.threads[thread].instructions.get(next[thread]) else { continue };
        next[thread] += 1;
        let Some(access) = instruction.kind.access() else { continue };
        let location = usize::from(access.place.location.0);
        match &access.kind {
            AccessKind::Store(values) => {
                if let Operand::Constant(value) = values.first() {
                    memory[location] = value;
                    stored.push((location, value));
                }
            }
            AccessKind::Load(destinations) if numbers.below(2) == 0 => {
                let register = &test.threads[thread].registers[usize::from(destinations.first().0)].name;
                terms.push((format!("P{thread}:{register}"), location, memory[location]));
            }
            AccessKind::Load(_) | AccessKind::Rmw { .. } | AccessKind::Await { .. } => {}
        }
    }
    for _ in 0..2 {
        let changed = numbers.below(terms.len().max(1) as u64) as usize;
        let Some((_, location, value)) = terms.get_mut(changed) else { continue };
        let others: Vec<i64> =
            stored.iter().filter(|(of, other)| of == location && other != value).map(|(_, v)| *v).collect();
        if !others.is_empty() {
            *value = others[numbers.below(others.len() as u64) as usize];
        }
    }
    let terms: Vec<String> = terms.iter().map(|(name, _, value)| format!("{name} == {value}")).collect();
    if !terms.is_empty() {
        let text = format!("({})", terms.join(" /\\ "));
        let condition = litmus::parse_condition(&text, "question", test).unwrap();
        test.question.iter_mut().for_each(|question| question.condition = condition.clone());
    }
}

/// Locks around counters: are increments lost, and do they race? The threads add the same number, so that
/// they are symmetric, or different numbers.
fn print_locks(yardstick: Duration) {
    println!("locks around a counter, vulkan, one workgroup a thread; cut off after 60 s");
    println!(
        "{:<18} {:>8} {:<6} {:>12} {:>12} {:<8}",
        "lock", "threads", "alike", "time", "/yardstick", "answered"
    );
    let model = shipped_model("vulkan");
    let compare_exchange: (&[&str], &[&str]) = (
        &["LC00:", "rmw.atom.acq.dv.sc0.semsc0.semvis.cas r0, l, 0, 1", "bne r0, 0, LC00"],
        &["st.atom.rel.dv.sc0.semsc0.semav l, 0"],
    );
    let ticket: (&[&str], &[&str]) = (
        &[
            "rmw.atom.dv.sc0.add r0, n, 1",
            "LC00:",
            "ld.atom.acq.dv.sc0.semsc0.semvis r1, l",
            "bne r1, r0, LC00",
            "add r3, r0, 1",
        ],
        &["st.atom.rel.dv.sc0.semsc0.semav l, r3"],
    );
    for (name, (before, after)) in [("compare-exchange", compare_exchange), ("ticket", ticket)] {
        for (threads, alike) in
            [(2, true), (4, true), (8, true), (12, true), (2, false), (4, false), (5, false)]
        {
            let column = |thread: usize| {
                let added = if alike { 1 } else { 1 << thread };
                let mut column: Vec<String> = before.iter().map(|line| (*line).to_owned()).collect();
                column.push("ld.nonpriv.sc0 r2, x".to_owned());
                column.push(format!("add r2, r2, {added}"));
                column.push("st.nonpriv.sc0 x, r2".to_owned());
                column.extend(after.iter().map(|line| (*line).to_owned()));
                column
            };
            let columns: Vec<Vec<String>> = (0..threads).map(column).collect();
            let sum = if alike { threads } else { (1 << threads) - 1 };
            let text = format!(
                "VULKAN lock\n{{ x = 0; l = 0; n = 0; }}\n{}exists (x != {sum})\n",
                families::format_program_table(&columns)
            );
            let test = litmus::parse(&text, "lock").unwrap();
            model.prepare(&test).unwrap();
            let start = Instant::now();
            let stop = || start.elapsed() >= Duration::from_secs(60);
            let options = PredictOptions { budget: Budget::until(&stop), unroll: 1 };
            let prediction = predict(&test, &model, &options).unwrap();
            let time = start.elapsed();
            let answered =
                prediction.race == litmus::Race::Free && prediction.can_meet_condition == Some(false);
            println!(
                "{name:<18} {threads:>8} {alike:<6} {:>12} {:>12.0} {answered:<8}",
                format_duration(time),
                ratio(time, yardstick)
            );
        }
    }
    println!();
}

fn print_growth(yardstick: Duration) {
    println!("growth under vulkan: median of 15 mixed tests, two locations, half of the accesses writes");
    println!(
        "{:>8} {:>9} {:>8} {:>12} {:>12} {:>12}",
        "threads", "accesses", "events", "median", "worst", "/yardstick"
    );
    let model = shipped_model("vulkan");
    for threads in [2usize, 3, 4, 6, 8] {
        for accesses in [1usize, 2, 3, 4, 5, 6] {
            let total = threads * accesses;
            if total > 24 {
                continue;
            }
            let mut numbers = Xorshift64(0xABCD_EF01_2345_6789);
            let mut times: Vec<Duration> = (0..15)
                .map(|_| {
                    let test =
                        generate_test(threads, accesses, 2, total / 2, AccessStyle::Mixed, &mut numbers);
                    model.prepare(&test).unwrap();
                    let stop = stop_after_three_seconds();
                    let options = PredictOptions { budget: Budget::until(&stop), unroll: 1 };
                    measure_shorter_of_two(|| {
                        black_box(predict(&test, &model, &options).unwrap());
                    })
                })
                .collect();
            times.sort_unstable();
            let middle = times[times.len() / 2];
            println!(
                "{threads:>8} {accesses:>9} {:>8} {:>12} {:>12} {:>12.1}",
                total + 2,
                format_duration(middle),
                format_duration(times[times.len() - 1]),
                ratio(middle, yardstick)
            );
        }
    }
    println!();
}

/// Returns the shorter time of two calls, or the time of the only call if it takes long.
fn measure_shorter_of_two(mut call: impl FnMut()) -> Duration {
    let start = Instant::now();
    call();
    let first = start.elapsed();
    if first > Duration::from_millis(50) {
        return first;
    }
    let start = Instant::now();
    call();
    first.min(start.elapsed())
}
