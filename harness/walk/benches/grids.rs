//! Speed and shadow memory of grid walks, on one core.
//!
//! Every kernel is walked with one schedule, a lock also with several. Times are compared with a fixed loop
//! in the same run, since machines differ and are noisy.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints what it measures")]

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use entry_point::{AnalysisOptions, inputs};

use spirv_reader::SpirvModule;
use walk::GridReport;

/// Kernels of the project: name, workgroups, schedules. The third schedule of a lock runs all workgroups
/// concurrently.
const PROJECT_KERNELS: [(&str, u32, u64); 4] =
    [("reduce-right", 4096, 1), ("lock-right", 256, 1), ("lock-right", 4096, 1), ("lock-right", 256, 4)];
/// Kernels of the corpus with their cases: radix sort, matrix tiles, n-body, image filters, scans.
const CORPUS_KERNELS: [&str; 8] = [
    "mesa_rs_histogram",
    "ggml_mulmm_id_ok",
    "ggml_soft_max",
    "nbody_ok",
    "nvpro_mipmap_general",
    "vello_flatten",
    "wgpusort_hist",
    "granite_binning",
];

fn main() {
    // `cargo test --benches` passes `--test`: this program has no tests.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let only: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let yardstick = time_reference_loop();
    println!("reference loop (10,000 dependent multiplications): {:.1} µs\n", yardstick.as_secs_f64() * 1e6);
    println!(
        "| kernel | invocations | orders | instructions | time | million steps/s | per reference loop | slowdown | shadow per byte |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let shaders = Path::new(env!("CARGO_MANIFEST_DIR")).join("../analysis/tests/shaders");
    let mut all = Vec::new();
    for (name, workgroups, orders) in PROJECT_KERNELS {
        let bytes = fs::read(shaders.join(name).with_extension("spvasm")).unwrap();
        let (grid, schedules) = (Some([workgroups, 1, 1]), Some(orders));
        all.push((name, bytes, AnalysisOptions { grid, schedules, ..AnalysisOptions::default() }));
    }
    let corpus = std::env::var_os("VK_LITMUS_CORPORA").map(|corpora| PathBuf::from(corpora).join("kernels"));
    for name in CORPUS_KERNELS {
        let Some(folder) = corpus.as_ref().map(|corpus| corpus.join(name)).filter(|folder| folder.exists())
        else {
            continue;
        };
        let case = inputs::parse_case_file(&fs::read_to_string(folder.join("case.toml")).unwrap(), &|name| {
            Err(format!("{name} is not there"))
        })
        .unwrap();
        let bytes = fs::read(folder.join(case.module.as_deref().unwrap_or("k.spv"))).unwrap();
        all.push((name, bytes, AnalysisOptions { schedules: Some(1), ..case.options }));
    }
    let is_selected =
        |name: &str| only.is_empty() || only.iter().any(|wanted| name.contains(wanted.as_str()));
    let (mut steps, mut time, mut blind) = (0, Duration::ZERO, Duration::ZERO);
    for (name, bytes, options) in all.into_iter().filter(|(name, ..)| is_selected(name)) {
        let module = entry_point::read_module(&bytes).unwrap();
        let (kernel_steps, kernel_time, unchecked_time) = measure_kernel(name, &module, &options, yardstick);
        steps += kernel_steps;
        time += kernel_time;
        blind += unchecked_time;
    }
    let slower = time.as_secs_f64() / blind.as_secs_f64();
    println!(
        "\ntogether: {:.1} millions a second, {slower:.2} times as long as without race checks",
        millions_per_second(steps, time)
    );
}

/// Measures a kernel and prints its row: instructions, their time, and the time of execution without checks.
fn measure_kernel(
    name: &str,
    module: &SpirvModule,
    options: &AnalysisOptions,
    yardstick: Duration,
) -> (u64, Duration, Duration) {
    let (best, report) = measure_walk(module, options);
    let (blind, _) = measure_walk(module, &AnalysisOptions { skip_race_checks: true, ..options.clone() });
    let invocations: u32 = report.grid.iter().chain(&report.local_size).product();
    println!(
        "| {name} | {invocations} | {} | {} | {:.4} s | {:.1} | {:.0} | {:.2} | {:.1} |",
        report.schedules,
        report.steps,
        best.as_secs_f64(),
        millions_per_second(report.steps, best),
        millions_per_second(report.steps, best) * yardstick.as_secs_f64() * 1e6,
        best.as_secs_f64() / blind.as_secs_f64(),
        report.shadow_bytes as f64 / report.accessed_bytes.max(1) as f64,
    );
    (report.steps, best, blind)
}

/// Returns the best time of several walks, with their report.
fn measure_walk(module: &SpirvModule, options: &AnalysisOptions) -> (Duration, GridReport) {
    let (mut best, mut walked) = (Duration::MAX, None);
    let started = Instant::now();
    while walked.is_none() || started.elapsed() < Duration::from_secs(2) {
        // Thread clocks advance by system ticks, so short walks are measured together.
        let (start, begun, mut walks) = (cpu_time(), Instant::now(), 0);
        while walks == 0 || begun.elapsed() < Duration::from_millis(400) {
            walked = Some(black_box(walk::analyze_grid(module, options).unwrap()));
            walks += 1;
        }
        best = best.min((cpu_time() - start) / walks);
    }
    (best, walked.unwrap())
}

/// Returns the CPU time of this thread if available, else the wall time.
fn cpu_time() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let statistics = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let statistics = statistics.as_ref().and_then(|text| text.split_whitespace().next()?.parse().ok());
    statistics.map_or_else(|| START.elapsed(), Duration::from_nanos)
}

fn millions_per_second(steps: u64, time: Duration) -> f64 {
    steps as f64 / time.as_secs_f64() / 1e6
}

/// Returns the best time of a loop of dependent multiplications.
fn time_reference_loop() -> Duration {
    let run = |seed: u64| {
        let start = Instant::now();
        let mut x = black_box(seed);
        for _ in 0..10_000 {
            x = x.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ (x >> 29);
        }
        black_box(x);
        start.elapsed()
    };
    (0..200).map(run).min().unwrap()
}
