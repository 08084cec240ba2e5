//! Random programs that may kill mutants of a model.

use litmus::Test;
use model::Model;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngSeed, TestRunner};

use witness::generate::{
    ProgramColumn, ProgramColumns, SplitMix64, generate_classes_program, generate_program,
};

use crate::{common, random};

/// Returns random programs in the dialect of a model, determined by the first number: chains of availability
/// and visibility, chains through hosts and memory dependencies, accesses of parts and of vectors,
/// cooperative accesses, calls and sections.
pub fn generate_programs(model: &Model, from: u64, count: u64) -> Vec<Test> {
    if model.supports_dialect(litmus::Dialect::Hsa) {
        return draw_values(&random::text(2..=4, 3), from, count)
            .into_iter()
            .filter_map(|text| litmus::parse(&text, "random").ok())
            .collect();
    }
    let of_text = |text: String| litmus::parse(&text, "random").ok();
    let eighth = count.div_ceil(16);
    let mut programs: Vec<Test> =
        (from..from + 8 * eighth).filter_map(|seed| of_text(generate_program(seed).text)).collect();
    programs.extend((from..from + 3 * eighth).filter_map(|seed| of_text(generate_host_chain(seed))));
    let classes = |seed| of_text(generate_classes_program(seed).text);
    programs.extend((from..from + eighth).filter_map(classes));
    programs.extend(draw_values(&common::test(), from, eighth));
    programs.extend(draw_values(&common::hosts(), from, eighth));
    programs.extend(draw_values(&common::calls(), from, eighth));
    programs.extend(draw_values(&common::sizes(), from, eighth));
    programs.extend(draw_values(&common::cooperative(), from, eighth));
    programs
}

fn draw_values<S: Strategy>(strategy: &S, from: u64, count: u64) -> Vec<S::Value> {
    let config = Config { rng_seed: RngSeed::Fixed(from), failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    (0..count).filter_map(|_| strategy.new_tree(&mut runner).ok()).map(|tree| tree.current()).collect()
}

/// Returns a program in which a payload passes through two to four agents, some of them host threads.
pub fn generate_host_chain(seed: u64) -> String {
    let mut numbers = SplitMix64(seed ^ 0x5EED);
    let count = numbers.pick(&[2, 2, 3, 3, 3, 4]);
    let hosts: Vec<bool> = (0..count).map(|_| numbers.chance(55)).collect();
    let mut code: Vec<Vec<String>> = vec![Vec::new(); count];
    let mut program = ProgramColumns::default();
    let mut submitted = vec![false; count];
    let noncoherent = numbers.chance(45);
    let access = |numbers: &mut SplitMix64, host: bool, write: bool, register: usize| {
        let name = if numbers.chance(10) { "a" } else { "x" };
        let how = match numbers.below(12) {
            _ if host && numbers.chance(85) => "",
            _ if host => ".atom.xd",
            0..=4 => "",
            5 | 6 => ".nonpriv",
            7 if write => ".av.wg",
            8 | 9 if write => ".av.dv",
            7 => ".vis.wg",
            8 | 9 => ".vis.dv",
            _ => ".atom.dv",
        };
        if write {
            format!("st{how}.sc0 {name}, {}", 1 + register)
        } else {
            format!("ld{how}.sc0 r{register}, {name}")
        }
    };
    let available = [
        "avdevice",
        "avdevice",
        "avdevice.shader_write",
        "avdevice.host_write",
        "avdevice.memory_write",
        "avdevice.none",
    ];
    let visible = [
        "visdevice",
        "visdevice",
        "visdevice.shader_read",
        "visdevice.host_read",
        "visdevice.host_write",
        "visdevice.shader_write",
    ];
    if numbers.chance(10) {
        let line = access(&mut numbers, hosts[0], false, 5);
        code[0].push(line);
    }
    let write = numbers.chance(85);
    let line = access(&mut numbers, hosts[0], write, 0);
    code[0].push(line);
    for from in 0..count - 1 {
        let to = from + 1;
        let (host, next_host) = (hosts[from], hosts[to]);
        if host && numbers.chance(if noncoherent { 75 } else { 15 }) {
            code[from].push(if numbers.chance(85) { "flush x" } else { "flush f" }.to_owned());
        }
        if !host && numbers.chance(45) {
            code[from].push(numbers.pick(&available).to_owned());
            if numbers.chance(60) {
                code[from].push(numbers.pick(&visible).to_owned());
            }
        }
        let kind = numbers.below(100);
        match (host, next_host) {
            (true, false) if kind < 70 => {
                code[from].push(format!("submit P{to}"));
                submitted[to] = true;
            }
            (false, true) if kind < 50 && !submitted[from] => {
                code[to].push(format!("submit P{from}"));
                submitted[from] = true;
                code[to].push(format!("wait P{from}"));
            }
            (false, true) if kind < 60 && submitted[from] => code[to].push(format!("wait P{from}")),
            _ if kind < 75 && numbers.chance(if host == next_host && host { 85 } else { 30 }) => {
                let scope = if host || next_host { "xd" } else { numbers.pick(&["dv", "wg", "qf"]) };
                match numbers.below(5) {
                    0 => {
                        code[from].push(format!("membar.rel.{scope}.semsc0.semav"));
                        code[from].push(format!("st.atom.{scope}.sc0 f, 1"));
                    }
                    1 => code[from].push(format!("st.atom.{scope}.sc0 f, 1")),
                    _ => code[from].push(format!("st.atom.rel.{scope}.sc0.semsc0.semav f, 1")),
                }
                match numbers.below(5) {
                    0 => {
                        code[to].push(format!("ld.atom.{scope}.sc0 r{}, f", 2 + from));
                        code[to].push(format!("membar.acq.{scope}.semsc0.semvis"));
                    }
                    1 => code[to].push(format!("ld.atom.{scope}.sc0 r{}, f", 2 + from)),
                    _ => code[to].push(format!("ld.atom.acq.{scope}.sc0.semsc0.semvis r{}, f", 2 + from)),
                }
            }
            _ => {
                let is_whole_thread = numbers.chance(40);
                let earlier = code[from].len().saturating_sub(1);
                if is_whole_thread {
                    program.system_sync.push(format!("ssw P{from} P{to}"));
                } else {
                    program.system_sync.push(format!("ssw P{from}.{earlier} P{to}.{}", code[to].len()));
                }
            }
        }
        if !next_host && numbers.chance(45) {
            if numbers.chance(40) {
                code[to].push(numbers.pick(&available).to_owned());
            }
            code[to].push(numbers.pick(&visible).to_owned());
        }
        if next_host && numbers.chance(if noncoherent { 70 } else { 10 }) {
            code[to].push("invalidate x".to_owned());
        }
        if to + 1 < count && numbers.chance(15) {
            let write = numbers.chance(50);
            let line = access(&mut numbers, next_host, write, 1);
            code[to].push(line);
        }
    }
    let last = count - 1;
    let write = numbers.chance(30);
    let line = access(&mut numbers, hosts[last], write, 1);
    code[last].push(line);
    if numbers.chance(15) {
        let write = numbers.chance(50);
        let line = access(&mut numbers, hosts[last], write, 6);
        code[last].push(line);
    }
    let kind = if noncoherent { "host, noncoherent" } else { "host" };
    let other = if numbers.chance(50) { "host" } else { kind };
    program.declarations = vec![
        format!("buffer u32 x [{kind}] = 0"),
        format!("buffer u32 f [{other}] = 0"),
        "buffer u32 a aliases x".to_owned(),
    ];
    let is_near = numbers.chance(30);
    for (index, lines) in code.into_iter().enumerate() {
        let column = match hosts[index] {
            true => ProgramColumn::default(),
            false => ProgramColumn::at(0, if is_near { 0 } else { index }, numbers.below(2)),
        };
        program.columns.push(ProgramColumn { lines, ..column });
    }
    program.question = "x == 0".to_owned();
    program.render("chain")
}
