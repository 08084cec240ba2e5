//! Small kernels with symbolic bounds: what the answer for chosen inputs says about them is true.
//!
//! Each kernel has three push constants: a count `n`, a stride `s` and a distance `o`. It is a guard, a target and
//! a source in prefix notation, optionally in a loop over `k` from 0 to `s`.

use analysis::{InputGrid, InputMode, choose_inputs, decide_choice};
use entry_point::{AnalysisOptions, FindingKind, read_module};
use model::{Budget, Model};
use walk::{RaceVerdict, analyze_grid};

const GUARDS: [&str; 4] = ["", "< i n", "< * i s n", "< l n"];
const TARGETS: [&str; 6] = ["i", "- - n 1 i", "+ i o", "* i s", "+ * i s k", "^ i 1"];
const SOURCES: [&str; 5] = ["", "i", "- - n 1 i", "+ i o", "^ i 1"];
/// Kernels outside of a soak, spread over all combinations.
const FAST_KERNELS: usize = 40;

/// Writes the code of a kernel.
#[derive(Default)]
struct KernelWriter {
    code: String,
    values: u32,
}

impl KernelWriter {
    fn add(&mut self, operation: &str, ty: &str, operands: &str) -> String {
        self.values += 1;
        let name = format!("%v{}", self.values);
        self.code += &format!("{name} = Op{operation} %{ty} {operands}\n");
        name
    }

    fn number<'t>(&mut self, words: &mut impl Iterator<Item = &'t str>) -> String {
        let operation = match words.next().unwrap_or_default() {
            "1" => return "%1".to_owned(),
            name @ ("i" | "l" | "k" | "n" | "s" | "o") => return format!("%{name}"),
            "+" => "IAdd",
            "-" => "ISub",
            "*" => "IMul",
            "^" => "BitwiseXor",
            _ => "ULessThan",
        };
        let (left, right) = (self.number(words), self.number(words));
        let ty = if operation == "ULessThan" { "bool" } else { "u32" };
        self.add(operation, ty, &format!("{left} {right}"))
    }

    fn expression(&mut self, text: &str) -> String {
        self.number(&mut text.split(' '))
    }

    fn element(&mut self, index: &str) -> String {
        let index = self.expression(index);
        self.add("AccessChain", "to_u32", &format!("%data %0 {index}"))
    }
}

fn kernel(guard: &str, target: &str, source: &str) -> String {
    let mut body = KernelWriter::default();
    if !guard.is_empty() {
        let holds = body.expression(guard);
        body.code +=
            &format!("OpSelectionMerge %end None\nOpBranchConditional {holds} %go %end\n%go = OpLabel\n");
    }
    let is_loop = target.contains('k');
    if is_loop {
        let before = if guard.is_empty() { "%start" } else { "%go" };
        body.code += &format!(
            "OpBranch %head\n%head = OpLabel\n%k = OpPhi %u32 %0 {before} %next %more\n%goes_on = OpULessThan %bool %k %s\n\
             OpLoopMerge %done %more None\nOpBranchConditional %goes_on %step %done\n%step = OpLabel\n"
        );
    }
    let value = match source {
        "" => "%i".to_owned(),
        source => {
            let from = body.element(source);
            body.add("Load", "u32", &from)
        }
    };
    let to = body.element(target);
    body.code += &format!("OpStore {to} {value}\n");
    if is_loop {
        body.code +=
            "OpBranch %more\n%more = OpLabel\n%next = OpIAdd %u32 %k %1\nOpBranch %head\n%done = OpLabel\n";
    }
    if !guard.is_empty() {
        body.code += "OpBranch %end\n%end = OpLabel\n";
    }
    include_str!("templates/chosen-inputs.spvasm").replace("BODY\n", &body.code)
}

/// A clean answer is clean for each choice that its coverage lists, and for every smaller count.
#[test]
fn clean_answers_are_true_for_the_inputs_that_they_list() {
    let combinations = GUARDS.iter().flat_map(|guard| {
        TARGETS.iter().flat_map(move |target| SOURCES.iter().map(move |source| (*guard, *target, *source)))
    });
    let all: Vec<_> = combinations.collect();
    let is_soak = std::env::var_os("VK_LITMUS_SOAK").is_some();
    let step = if is_soak { 1 } else { all.len() / FAST_KERNELS };
    let (given, model) = (AnalysisOptions::default(), Model::shipped("vulkan").unwrap().unwrap());
    let mut clean = 0;
    for (guard, target, source) in all.into_iter().step_by(step) {
        let name = format!("if ({guard}) d[{target}] = {source}");
        let module = read_module(kernel(guard, target, source).as_bytes()).unwrap();
        let choice = choose_inputs(&module, &given, InputMode::Auto, InputGrid::Chosen).unwrap();
        let report = decide_choice(&module, &given, &choice, &model, Budget::default()).unwrap().report;
        if report.verdict != RaceVerdict::Clean {
            continue;
        }
        let coverage = format!("{:?}", report.chosen_inputs);
        clean += 1;
        for choice in choice.all_choices(&given) {
            for count in [None, Some(127_u32), Some(100), Some(64), Some(3)] {
                let mut options = AnalysisOptions { assumed: Vec::new(), ..choice.clone() };
                // Less invocations pass a smaller bound, at the elements at which they passed before.
                if let Some(count) = count.filter(|_| guard == "< i n") {
                    options.push.extend((0..).zip(count.to_le_bytes()));
                }
                let report = analyze_grid(&module, &options).unwrap();
                // The coverage names the lengths that accesses exceed.
                let found = report.findings.iter().filter(|found| found.kind != FindingKind::OutOfBounds);
                let found: Vec<&str> = found.map(|found| found.message.as_str()).collect();
                assert!(
                    found.is_empty(),
                    "{name} with n = {count:?}: {found:?} although clean for {coverage}"
                );
            }
        }
    }
    assert!(clean > 3, "{clean}");
}
