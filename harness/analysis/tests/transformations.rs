//! Random transformations of random kernels in an open world: no legal one has the verdict `breaks`, and each
//! illegal one is detected.
//!
//! A kernel is a list of steps of one invocation that shares its memory with others; `transformations/steps.txt` has
//! their forms. A legal transformation is a rule of `transformations/legal.txt`, which is legal for every kernel and
//! every context. An illegal transformation of `transformations/illegal.txt` replaces the core of a kernel, with
//! random steps on other memory around it. Its verdict is never `refines`, and `breaks` for some kernels.
//! `VK_LITMUS_TRANSFORMATIONS` sets the number of legal transformations.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;

use entry_point::AnalysisOptions;
use entry_point::open_memory::{OpenPart, OpenParts};
use model::{Budget, Model};
use refine::{KernelVersion, RefinementQuery};
use results::wire::RefineVerdict;
use spirv_reader::SpirvModule;

use crate::derivation::Random;

/// The module of a kernel without its code.
const HEADER: &str = include_str!("transformations/header.spvasm");
/// Constants up to this number have names.
const CONSTANTS: usize = 16;

/// The values of the variables of a pattern.
type Bindings = BTreeMap<String, String>;

/// Returns the words and signs of a step.
fn tokens(text: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let parts = text.split_inclusive(|c: char| !is_word(c)).flat_map(|part| match part.chars().last() {
        Some(end) if !is_word(end) => part.split_at(part.len() - end.len_utf8()).into(),
        _ => [part, ""],
    });
    parts.filter(|token| !token.trim().is_empty()).collect()
}

/// Returns true if a token is a value of a variable, whose first letter is its kind.
fn is_value_of(variable: &str, token: &str) -> bool {
    let is_number = token.parse::<u32>().is_ok();
    let is_register = token.strip_prefix('r').is_some_and(|number| number.parse::<u32>().is_ok());
    match variable.as_bytes()[0] {
        b'R' => is_register,
        b'N' => is_number,
        b'V' => is_register || is_number,
        b'O' => ["relaxed", "acquire", "release", "acq_rel"].contains(&token),
        _ => false,
    }
}

fn is_variable(token: &str) -> bool {
    token.starts_with(['R', 'N', 'V', 'O'])
}

/// Extends the bindings so that the pattern is the step; false if it is not.
fn match_step(pattern: &str, step: &str, bindings: &mut Bindings) -> bool {
    let (pattern, step) = (tokens(pattern), tokens(step));
    pattern.len() == step.len()
        && pattern.iter().zip(&step).all(|(expected, found)| {
            if !is_variable(expected) {
                return expected == found;
            }
            let value = bindings.entry((*expected).to_owned()).or_insert_with(|| (*found).to_owned());
            value == found && is_value_of(expected, found)
        })
}

/// Returns a step of a rule with the values of its variables.
fn fill_step(pattern: &str, bindings: &Bindings) -> String {
    let word = |token: &str| bindings.get(token).cloned().unwrap_or_else(|| token.to_owned());
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let parts = pattern.split_inclusive(|c: char| !is_word(c)).map(|part| {
        let name = part.trim_end_matches(|c: char| !is_word(c));
        word(name) + &part[name.len()..]
    });
    parts.collect()
}

/// Returns the register that a step defines.
fn defined_register(step: &str) -> Option<&str> {
    step.split_once(" = ").map(|(left, _)| left).filter(|left| is_value_of("R", left))
}

/// Returns the element that a step accesses, such as `words[0]`.
fn accessed_element(step: &str) -> Option<&str> {
    step.split(' ').find(|word| word.contains('['))?.split_inclusive(']').next()
}

/// Returns true if the second of two steps reads a register of the first, or both access one element.
fn depend_on_each_other(first: &str, second: &str) -> bool {
    let is_read = |register| tokens(second).contains(&register);
    defined_register(first).is_some_and(is_read)
        || accessed_element(first).is_some_and(|element| accessed_element(second) == Some(element))
}

/// Returns the lines of a data file with their numbers, without comments.
fn numbered_lines(text: &'static str) -> impl Iterator<Item = (usize, &'static str)> {
    (1..).zip(text.lines()).filter(|(_, line)| !line.starts_with('#'))
}

/// The forms of steps, each with the lines of its code.
fn step_forms() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut forms: Vec<(&str, Vec<&str>)> = Vec::new();
    for (number, line) in numbered_lines(include_str!("transformations/steps.txt")) {
        match (line.strip_prefix("    "), forms.last_mut()) {
            (Some(code), Some((_, lines))) => lines.push(code),
            (Some(_), None) => panic!("steps.txt:{number}: code without a step"),
            (None, _) => forms.push((line, Vec::new())),
        }
    }
    forms
}

fn module_of(steps: &[String]) -> SpirvModule {
    let forms = step_forms();
    let mut text = HEADER.to_owned();
    for number in 0..CONSTANTS {
        text += &format!("%c{number}_ = OpConstant %u32 {number}\n");
    }
    text += "%main = OpFunction %void None %function\n%entry = OpLabel\n";
    let mut end = String::new();
    for (at, step) in steps.iter().enumerate() {
        let mut bindings = Bindings::new();
        let form = forms.iter().find(|(form, _)| {
            bindings.clear();
            match_step(form, step, &mut bindings)
        });
        let (_, code) = form.unwrap_or_else(|| panic!("steps.txt has no form of `{step}`"));
        let mut closing = String::new();
        for line in code {
            let line = bindings.iter().fold(line.replace('#', &at.to_string()), |line, (name, value)| {
                line.replace(&format!("{{{name}}}"), &operand(value))
            });
            match line.strip_prefix("at the end: ") {
                Some(line) => closing += &format!("{line}\n"),
                None => text += &format!("{line}\n"),
            }
        }
        end = closing + &end;
        // The results have a word for each register.
        if let Some(register) = defined_register(step) {
            let number = operand(&register[1..]);
            text += &format!(
                "%q{at} = OpAccessChain %to_u32 %results %c0_ {number}\nOpStore %q{at} %{register}\n"
            );
        }
    }
    text += &end;
    text += "OpReturn\nOpFunctionEnd\n";
    entry_point::read_module(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the operand of a value: a register, a constant, or the semantics of an order.
fn operand(value: &str) -> String {
    match value {
        "relaxed" => "%c0_".to_owned(),
        "acquire" => "%c66".to_owned(),
        "release" => "%c68".to_owned(),
        "acq_rel" => "%c72".to_owned(),
        register if register.starts_with('r') => format!("%{register}"),
        number => format!("%c{number}_"),
    }
}

/// Returns the verdict if other invocations may access words and flags.
fn refinement_verdict(model: &Model, before: &[String], after: &[String]) -> RefineVerdict {
    let (before, after) = (module_of(before), module_of(after));
    let whole = |binding| OpenPart { set: 0, binding, scalar: None };
    let open: OpenParts = Some([0, 1].map(whole).into());
    let options = AnalysisOptions { grid: Some([1; 3]), ..AnalysisOptions::default() };
    let query = RefinementQuery { model, budget: Budget::default(), stop: &|| false, open: Some(&open) };
    let [before, after] = [&before, &after].map(|module| KernelVersion { module, options: &options });
    refine::refine(before, after, &query).unwrap().verdict
}

/// Generator of steps on some words and flags.
struct Steps {
    random: Random,
    registers: usize,
}

impl Steps {
    fn fresh_register(&mut self) -> usize {
        self.registers += 1;
        self.registers - 1
    }

    /// Returns a step. The number of registers is limited, because the results have one word for each.
    fn random_step(&mut self, first: usize, known: &[String]) -> String {
        let (word, flag) = (first + self.random.below(2), first + self.random.below(2));
        let order = |ordered, this: &mut Steps| if this.random.below(2) == 0 { "relaxed" } else { ordered };
        let kind = if self.registers >= CONSTANTS { 3 + self.random.below(4) } else { self.random.below(7) };
        // Half of the accesses after a load are at a position that it selects.
        if let (0 | 6, Some(index)) = (kind, known.get(self.random.below(known.len() + 1)))
            && self.random.below(2) == 0
        {
            return match kind {
                0 => format!("r{} = words[{index}]", self.fresh_register()),
                _ => format!("words[{index}] = {}", 3 + self.random.below(4)),
            };
        }
        match kind {
            0 | 1 => format!("r{} = words[{word}]", self.fresh_register()),
            2 => format!("r{} = flags[{flag}].{}", self.fresh_register(), order("acquire", self)),
            3 => format!("load words[{word}]"),
            4 => format!("flags[{flag}].{} = {}", order("release", self), 1 + self.random.below(2)),
            5 => format!("fence.{}", ["acquire", "release", "acq_rel"][self.random.below(3)]),
            _ => {
                let from = known.get(self.random.below(known.len() + 2)).cloned();
                let value = from.unwrap_or_else(|| (3 + self.random.below(4)).to_string());
                format!("words[{word}] = {value}")
            }
        }
    }

    /// Returns `count` steps, with guards for some flags.
    fn random_kernel(&mut self, count: usize, first: usize, guards: bool) -> Vec<String> {
        let mut steps: Vec<String> = Vec::new();
        for _ in 0..count {
            let defined = steps.iter().filter_map(|step| defined_register(step));
            let known: Vec<String> = defined.map(str::to_owned).collect();
            let step = self.random_step(first, &known);
            let flag =
                defined_register(&step).filter(|_| guards && step.contains(" = flags")).map(str::to_owned);
            steps.push(step);
            steps.extend(flag.filter(|_| self.random.below(2) == 0).map(|register| format!("if {register}")));
        }
        steps
    }
}

/// A transformation: its name, and the steps before and after it.
struct Transformation {
    name: &'static str,
    before: Vec<&'static str>,
    after: Vec<&'static str>,
}

/// Returns the transformations of a data file.
fn transformations(file: &str, text: &'static str) -> Vec<Transformation> {
    let steps = |text: &'static str| text.split(';').map(str::trim).filter(|step| !step.is_empty()).collect();
    let row = |(number, line): (usize, &'static str)| {
        let parts = line.split_once(": ").and_then(|(name, change)| Some((name, change.split_once(" =>")?)));
        let (name, (before, after)) = parts.unwrap_or_else(|| panic!("{file}:{number}: {line}"));
        Transformation { name, before: steps(before), after: steps(after) }
    };
    numbered_lines(text).filter(|(_, line)| !line.contains(" is ")).map(row).collect()
}

/// Returns the classes of steps in `legal.txt`, each with its forms.
fn step_classes() -> BTreeMap<&'static str, Vec<&'static str>> {
    let classes = numbered_lines(include_str!("transformations/legal.txt"));
    let classes = classes.filter_map(|(_, line)| line.split_once(" is "));
    let all = step_forms().into_iter().map(|(form, _)| form).collect();
    classes.map(|(name, forms)| (name, forms.split(" | ").collect())).chain([("Step", all)]).collect()
}

/// Applies a rule to the first steps of a list; `None` if it does not apply there.
fn apply_rule(rule: &Transformation, steps: &[String]) -> Option<Vec<String>> {
    let taken = steps.get(..rule.before.len())?;
    let classes = step_classes();
    let (mut bindings, mut whole) = (Bindings::new(), BTreeMap::new());
    for (pattern, step) in rule.before.iter().zip(taken) {
        let class = pattern.split_once(' ').and_then(|(class, name)| Some((classes.get(class)?, name)));
        let is_matched = match class {
            None => match_step(pattern, step, &mut bindings),
            Some((forms, name)) => {
                whole.insert(name, step.clone());
                forms.iter().any(|form| match_step(form, step, &mut Bindings::new()))
            }
        };
        if !is_matched {
            return None;
        }
    }
    // Steps that change places are independent.
    if rule.after == ["B", "A"] && depend_on_each_other(&whole["A"], &whole["B"]) {
        return None;
    }
    let put =
        rule.after.iter().map(|step| whole.get(step).cloned().unwrap_or_else(|| fill_step(step, &bindings)));
    Some(put.chain(steps[taken.len()..].iter().cloned()).collect())
}

#[test]
fn legal_transformations_never_break() {
    let model = Model::shipped("vulkan").unwrap().unwrap();
    let count = std::env::var("VK_LITMUS_TRANSFORMATIONS").map_or(80, |text| text.parse().unwrap());
    let rules = transformations("legal.txt", include_str!("transformations/legal.txt"));
    let mut proved = 0;
    for number in 0..count {
        let rule = &rules[number % rules.len()];
        // Draws kernels until the rule applies to one.
        let applied = (0_u64..).find_map(|attempt| {
            let mut random = Random::new(number as u64 + 1_000_003 * attempt);
            let length = 3 + random.below(4);
            let mut steps = Steps { random, registers: 0 };
            let before = steps.random_kernel(length, 0, true);
            let from = steps.random.below(before.len());
            let apply = |at: usize| Some([&before[..at], &apply_rule(rule, &before[at..])?].concat());
            let after = (from..before.len()).find_map(apply)?;
            Some((before, after))
        });
        let (before, after) = applied.unwrap();
        match refinement_verdict(&model, &before, &after) {
            RefineVerdict::Refines | RefineVerdict::Stronger => proved += 1,
            RefineVerdict::Unknown | RefineVerdict::Failed => {}
            RefineVerdict::Breaks => panic!("{number}, {}:\n{before:?}\n{after:?}", rule.name),
        }
    }
    println!("{count} legal transformations, {proved} proved");
    // If nothing were proved, there would be no false alarms either.
    assert!(4 * proved > 3 * count, "{proved} of {count} proved");
}

#[test]
fn each_illegal_transformation_is_detected() {
    let model = Model::shipped("vulkan").unwrap().unwrap();
    let count = std::env::var("VK_LITMUS_TRANSFORMATIONS").map_or(33, |text| text.parse().unwrap());
    let kinds = transformations("illegal.txt", include_str!("transformations/illegal.txt"));
    let (mut found, mut tried) = (vec![0; kinds.len()], vec![0; kinds.len()]);
    for seed in 1..=count {
        let kind = seed % kinds.len();
        let Transformation { name, before, after } = &kinds[kind];
        let random = Random::new(seed as u64);
        // The core uses registers 0 to 2, and words and flags 0 and 1.
        let mut steps = Steps { random, registers: 3 };
        let (first, last) = (steps.random.below(3), steps.random.below(2));
        let (first, last) = (steps.random_kernel(first, 2, false), steps.random_kernel(last, 2, false));
        let around = |core: &[&str]| {
            let core: Vec<String> = core.iter().map(|step| (*step).to_owned()).collect();
            [&first[..], &core, &last[..]].concat()
        };
        tried[kind] += 1;
        match refinement_verdict(&model, &around(before), &around(after)) {
            RefineVerdict::Breaks => found[kind] += 1,
            RefineVerdict::Unknown | RefineVerdict::Failed => {}
            verdict => panic!("seed {seed}, {name}: {verdict:?}\n{first:?}\n{last:?}"),
        }
    }
    let all = kinds.iter().zip(found.iter().zip(&tried));
    for (rule, (found, tried)) in all.clone() {
        println!("{}: {found} of {tried}", rule.name);
    }
    let missed: Vec<&str> =
        all.filter(|(_, (found, tried))| **found == 0 && **tried > 0).map(|(rule, _)| rule.name).collect();
    assert!(missed.is_empty(), "never found: {missed:?}");
}
