//! Random kernels: what is proved is race-free in the walk for every value of small domains, and counterexamples replay.
//!
//! Kernels have one or two symbolic push constants, a workgroup of four and up to three workgroups, nested branches and
//! loops, barriers of different strength, workgroup memory, a buffer and a counter. `VK_LITMUS_KERNELS` sets their number.

use entry_point::{AnalysisOptions, FindingKind};
use prove::{InputMemory, ProofOptions, ProofReport, RacyInputs, prove};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use spirv_reader::SpirvModule;
use walk::analyze_grid;

/// The values of each push constant.
const VALUES: u32 = 4;
/// The size of a buffer that a counterexample sets.
const BUFFER_BYTES: usize = 1 << 16;

struct KernelWriter {
    random: Xoshiro256PlusPlus,
    text: String,
    next: u32,
    loops: Vec<String>,
    /// True once an address or condition depends on memory.
    depends_on_memory: bool,
}

impl KernelWriter {
    fn emit(&mut self, operation: &str) -> String {
        self.next += 1;
        let id = format!("%x{}", self.next);
        self.line(&format!("{id} = {operation}"));
        id
    }

    fn line(&mut self, text: &str) {
        self.text += text;
        self.text.push('\n');
    }

    fn label(&mut self) -> String {
        self.next += 1;
        format!("%l{}", self.next)
    }

    fn expression(&mut self, depth: u32) -> String {
        if depth == 0 || self.random.random_bool(0.3) {
            let number = self.random.random_range(0..8);
            let choice = self.random.random_range(0..14);
            return match choice {
                0 | 1 => format!("%c{number}"),
                2..=4 => "%lx".to_owned(),
                5..=7 => "%gx".to_owned(),
                8 => "%wx".to_owned(),
                9 => "%a".to_owned(),
                10 => "%b".to_owned(),
                11 => "%nx".to_owned(),
                12 if self.random.random_bool(0.5) => {
                    self.depends_on_memory = true;
                    self.emit("OpLoad %uint %memory")
                }
                _ => match self.loops.last().cloned() {
                    Some(counter) => self.emit(&format!("OpLoad %uint {counter}")),
                    None => "%lx".to_owned(),
                },
            };
        }
        let first = self.expression(depth - 1);
        let number = self.random.random_range(1..5);
        let operation = match self.random.random_range(0..9) {
            0..=2 => format!("OpIAdd %uint {first} {}", self.expression(depth - 1)),
            3 => format!("OpIMul %uint {first} {}", self.expression(depth - 1)),
            4 => format!("OpISub %uint {first} {}", self.expression(depth - 1)),
            5 => format!("OpUDiv %uint {first} %c{number}"),
            6 => format!("OpUMod %uint {first} %c{number}"),
            7 => format!("OpShiftRightLogical %uint {first} %c1"),
            _ => format!("OpIMul %uint {first} %c{number}"),
        };
        self.emit(&operation)
    }

    fn condition(&mut self) -> String {
        let (first, second) = (self.expression(1), self.expression(1));
        let operation = ["OpULessThan", "OpIEqual", "OpUGreaterThanEqual"][self.random.random_range(0..3)];
        self.emit(&format!("{operation} %bool {first} {second}"))
    }

    fn address(&mut self) -> String {
        // Most kernels of independent addresses race.
        if self.random.random_bool(0.5) {
            let (pointer, index) = match self.random.random_bool(0.5) {
                true => ("%shared_pointer %shared", "%lx"),
                false => ("%buffer_pointer %buffer %c0", "%gx"),
            };
            return self.emit(&format!("OpAccessChain {pointer} {index}"));
        }
        let index = self.expression(2);
        if self.random.random_bool(0.5) {
            let index = self.emit(&format!("OpBitwiseAnd %uint {index} %c63"));
            return self.emit(&format!("OpAccessChain %shared_pointer %shared {index}"));
        }
        self.emit(&format!("OpAccessChain %buffer_pointer %buffer %c0 {index}"))
    }

    fn statements(&mut self, count: u32, depth: u32) {
        for _ in 0..count {
            match self.random.random_range(0..12) {
                0..=2 => {
                    let (value, address) = (self.expression(1), self.address());
                    self.line(&format!("OpStore {address} {value}"));
                }
                3..=4 => {
                    let address = self.address();
                    let value = self.emit(&format!("OpLoad %uint {address}"));
                    self.line(&format!("OpStore %memory {value}"));
                }
                5 => {
                    self.depends_on_memory = true;
                    let ticket = self.emit("OpAtomicIAdd %uint %counter %c1 %c0 %c1");
                    let chain = self.emit(&format!("OpAccessChain %buffer_pointer %buffer %c0 {ticket}"));
                    self.line(&format!("OpStore {chain} {ticket}"));
                }
                6..=7 => {
                    let semantics =
                        ["%c264", "%c264", "%c264", "%c72", "%c0"][self.random.random_range(0..5)];
                    self.line(&format!("OpControlBarrier %c2 %c2 {semantics}"));
                }
                8..=9 if depth > 0 => {
                    let (condition, yes, merge) = (self.condition(), self.label(), self.label());
                    self.line(&format!("OpSelectionMerge {merge} None"));
                    self.line(&format!("OpBranchConditional {condition} {yes} {merge}\n{yes} = OpLabel"));
                    self.statements(2, depth - 1);
                    self.line(&format!("OpBranch {merge}\n{merge} = OpLabel"));
                }
                10 if depth > 0 && self.loops.len() < 2 => self.write_loop(depth),
                _ => {}
            }
        }
    }

    fn write_loop(&mut self, depth: u32) {
        let counter = format!("%i{}", self.loops.len());
        let (initial, bound) = (self.expression(1), self.expression(1));
        let bound = self.emit(&format!("OpBitwiseAnd %uint {bound} %c7"));
        let step = ["%c1", "%c1", "%c2", "%c4", "%nx"][self.random.random_range(0..5)];
        let [header, test, body, next, merge] = [0; 5].map(|_| self.label());
        self.line(&format!("OpStore {counter} {initial}\nOpBranch {header}\n{header} = OpLabel"));
        self.line(&format!("OpLoopMerge {merge} {next} None\nOpBranch {test}\n{test} = OpLabel"));
        let value = self.emit(&format!("OpLoad %uint {counter}"));
        let continues = self.emit(&format!("OpULessThan %bool {value} {bound}"));
        self.line(&format!("OpBranchConditional {continues} {body} {merge}\n{body} = OpLabel"));
        self.loops.push(counter.clone());
        self.statements(2, depth - 1);
        self.loops.pop();
        self.line(&format!("OpBranch {next}\n{next} = OpLabel"));
        let value = self.emit(&format!("OpLoad %uint {counter}"));
        let sum = self.emit(&format!("OpIAdd %uint {value} {step}"));
        self.line(&format!("OpStore {counter} {sum}\nOpBranch {header}\n{merge} = OpLabel"));
    }
}

const HEADER: &str = include_str!("random.spvasm");

fn random_kernel(seed: u64) -> (String, bool) {
    let random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut writer =
        KernelWriter { random, text: String::new(), next: 0, loops: Vec::new(), depends_on_memory: false };
    let count = writer.random.random_range(2..5);
    writer.statements(count, 2);
    let coherent = if writer.random.random_bool(0.5) { "OpMemberDecorate %block 0 Coherent" } else { "" };
    let text = HEADER.replace("; COHERENT", coherent).replace("; BODY", &writer.text);
    (text, writer.depends_on_memory)
}

fn options(grid: u32, a: u32, b: u32) -> AnalysisOptions {
    let push = (0..).zip(a.to_le_bytes().into_iter().chain(b.to_le_bytes())).collect();
    AnalysisOptions { grid: Some([grid, 1, 1]), push, ..AnalysisOptions::default() }
}

/// Returns the races and divergent barriers that the walk finds.
fn defects(module: &SpirvModule, options: &AnalysisOptions) -> Vec<String> {
    let Ok(report) = analyze_grid(module, options) else { return Vec::new() };
    let is_defect = |kind: FindingKind| kind.is_race() || kind == FindingKind::DivergentBarrier;
    report.findings.iter().filter(|found| is_defect(found.kind)).map(|found| found.message.clone()).collect()
}

/// Returns true if values satisfy the conditions of a proof. Small values do not wrap, except in differences.
fn satisfies(report: &ProofReport, grid: u32, a: u32, b: u32) -> Option<bool> {
    let number = |word: &str| match word {
        "pc.a" => Some(a),
        "pc.b" => Some(b),
        "groups.x" => Some(grid),
        word => word.parse().ok(),
    };
    let mut all = report.grid[0].is_none_or(|count| count == grid);
    for condition in &report.conditions {
        let words: Vec<&str> = condition.split(' ').collect();
        all &= match words.as_slice() {
            [x, ">=", y] => number(x)? >= number(y)?,
            [x, "<=", y] => number(x)? <= number(y)?,
            [x, "==", y] => number(x)? == number(y)?,
            [x, "!=", y] => number(x)? != number(y)?,
            [x, "%", y, "==", "0"] => number(x)? % number(y)? == 0,
            [x, "&", ..] => number(x)?.count_ones() <= 1,
            [x, "*", y, "<=", z] => number(x)? * number(y)? <= number(z)?,
            [x, "*", y, ">=", z] => number(x)? * number(y)? >= number(z)?,
            _ if condition.ends_with("does not wrap") && !condition.contains(" - ") => true,
            _ => return None,
        };
    }
    Some(all)
}

#[test]
fn proofs_of_random_kernels_hold_in_the_walk() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let (first, count) = (number("VK_LITMUS_SEED").unwrap_or(0), number("VK_LITMUS_KERNELS").unwrap_or(300));
    let (mut proved, mut conditional, mut replayed, mut missed) = (0, 0, 0, 0);
    let mut failures = Vec::new();
    for seed in first..first + count {
        let (text, depends_on_memory) = random_kernel(seed);
        let module = entry_point::read_module(text.as_bytes()).unwrap_or_else(|why| panic!("{why}\n{text}"));
        let report = prove(&module, &ProofOptions { steps: 20_000, ..ProofOptions::default() }, None);
        let mut racy = 0;
        for (grid, a, b) in
            (1..=3).flat_map(|grid| (0..VALUES * VALUES).map(move |n| (grid, n / VALUES, n % VALUES)))
        {
            if !report.is_proved && racy > 0 {
                break;
            }
            if report.is_proved && satisfies(&report, grid, a, b) != Some(true) {
                continue;
            }
            let found = defects(&module, &options(grid, a, b));
            if report.is_proved && !found.is_empty() {
                failures.push(format!(
                    "seed {seed}, grid {grid}, a = {a}, b = {b}: proved if {:?}, but {found:?}\n{text}",
                    report.conditions
                ));
                break;
            }
            racy += usize::from(!found.is_empty());
        }
        proved += usize::from(report.is_proved);
        conditional += usize::from(report.is_proved && !report.conditions.is_empty());
        missed += usize::from(!report.is_proved && racy == 0);
        let is_small = |one: &RacyInputs| {
            one.grid[0] <= 64 && one.inputs.iter().all(|input| input.offset < BUFFER_BYTES as u64 - 4)
        };
        for (why, counterexample) in report.counterexamples.iter().take(1).filter(|one| is_small(&one.1)) {
            let mut inputs = options(counterexample.grid[0], 0, 0);
            for input in &counterexample.inputs {
                if let InputMemory::Buffer(set, binding, _) = input.memory {
                    let contents =
                        inputs.buffers.entry((set, binding)).or_insert_with(|| vec![0; BUFFER_BYTES]);
                    let start = input.offset as usize;
                    contents[start..start + 4].copy_from_slice(&input.bytes);
                    continue;
                }
                inputs.push.extend((input.offset..).zip(input.bytes.iter().copied()));
            }
            let is_found = !defects(&module, &inputs).is_empty();
            replayed += usize::from(is_found);
            if !is_found && !depends_on_memory {
                failures.push(format!("seed {seed}: {why:?} {counterexample:?} does not replay\n{text}"));
            }
        }
    }
    println!(
        "{count} kernels: {proved} proved ({conditional} under a condition), {replayed} counterexamples replayed, {missed} race-free in small domains and not proved"
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(proved > count as usize / 10 && replayed > count as usize / 10);
}
