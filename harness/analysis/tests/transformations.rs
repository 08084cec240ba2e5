//! Random transformations of random kernels in an open world: no legal one has the verdict `breaks`, and each
//! illegal one is detected.
//!
//! A kernel is a list of steps of one invocation that shares its memory with others. A legal transformation
//! is a rule in `LEGAL`; each rule is legal for every kernel and every context. An illegal transformation
//! replaces the core of a kernel, with random steps on other memory around it. Its verdict is never
//! `refines`, and `breaks` for some kernels. `VK_LITMUS_TRANSFORMATIONS` sets the number of legal
//! transformations. Long because both tables have the same steps.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use entry_point::AnalysisOptions;
use entry_point::open_memory::{OpenPart, OpenParts};
use model::{Budget, Model};
use refine::{KernelVersion, RefinementQuery};
use results::wire::RefineVerdict;
use spirv_reader::SpirvModule;

use crate::derivation::Random;

/// A value to store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Constant(u32),
    Loaded(usize),
}

/// The order of an atomic or a memory barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemoryOrder {
    Relaxed,
    Acquire,
    Release,
    AcquireRelease,
}

/// A step of a kernel. Loads define the register `to`, whose value the kernel copies to its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// A plain, visible load of a word.
    Load { word: usize, to: usize },
    /// A plain, available store to a word.
    Store { word: usize, value: Value },
    /// An atomic load of a flag.
    LoadFlag { flag: usize, to: usize, order: MemoryOrder },
    /// An atomic store to a flag.
    StoreFlag { flag: usize, value: u32, order: MemoryOrder },
    /// A memory barrier at device scope.
    Fence(MemoryOrder),
    /// The later steps are executed only if the loaded flag was 1.
    Guard { register: usize },
    /// A register without a load.
    Define { to: usize, value: Value },
    /// A relaxed or ordered addition of 1 to a flag.
    AddToFlag { flag: usize, to: usize, order: MemoryOrder },
    /// Waits until a flag is 1.
    WaitForFlag { flag: usize, to: usize },
    /// Runs forever if a register is 0.
    HangIfZero { register: usize },
    /// A plain load, repeated while the word is 1.
    LoadWhileOne { word: usize },
    /// A volatile load of a word.
    LoadVolatile { word: usize, to: usize },
    /// A volatile store to a word.
    StoreVolatile { word: usize, value: u32 },
    /// A plain load whose value is not used.
    UnusedLoad { word: usize },
    /// A plain load of word 0 or 1, as a bit of a register selects.
    LoadAt { index: usize, to: usize },
    /// A plain store to word 0 or 1, as a bit of a register selects.
    StoreAt { index: usize, value: u32 },
}

use MemoryOrder::{Acquire, AcquireRelease, Relaxed, Release};
use Step::{
    AddToFlag, Define, Fence, Guard, HangIfZero, Load, LoadAt, LoadFlag, LoadVolatile, LoadWhileOne, Store,
    StoreAt, StoreFlag, StoreVolatile, UnusedLoad, WaitForFlag,
};
use Value::{Constant, Loaded};

impl Step {
    /// Returns the word of a plain access.
    fn word(self) -> Option<usize> {
        match self {
            Load { word, .. } | Store { word, .. } | UnusedLoad { word } => Some(word),
            _ => None,
        }
    }

    fn defined_register(self) -> Option<usize> {
        match self {
            Load { to, .. }
            | LoadFlag { to, .. }
            | Define { to, .. }
            | LoadAt { to, .. }
            | AddToFlag { to, .. }
            | WaitForFlag { to, .. }
            | LoadVolatile { to, .. } => Some(to),
            _ => None,
        }
    }

    fn used_register(self) -> Option<usize> {
        match self {
            Store { value: Loaded(register), .. }
            | Define { value: Loaded(register), .. }
            | Guard { register } => Some(register),
            LoadAt { index, .. } | StoreAt { index, .. } => Some(index),
            _ => None,
        }
    }

    fn is_at_variable_position(self) -> bool {
        matches!(self, LoadAt { .. } | StoreAt { .. })
    }
}

/// The module of a kernel without its code.
const HEADER: &str = include_str!("transformations.spvasm");
/// Constants up to this number have names.
const CONSTANTS: usize = 16;

fn module_of(steps: &[Step]) -> SpirvModule {
    let mut text = HEADER.to_owned();
    for number in 0..CONSTANTS {
        text += &format!("%c{number}_ = OpConstant %u32 {number}\n");
    }
    text += "%main = OpFunction %void None %function\n%entry = OpLabel\n";
    let value = |value: Value| match value {
        Constant(number) => format!("%c{number}_"),
        Loaded(register) => format!("%r{register}"),
    };
    let semantics = |order: MemoryOrder| match order {
        Relaxed => "%c0_",
        Acquire => "%c66",
        Release => "%c68",
        AcquireRelease => "%c72",
    };
    let mut guards = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let chain = |memory: &str, index: usize| {
            format!("%p{at} = OpAccessChain %to_u32 %{memory} %c0_ %c{index}_\n")
        };
        let selected = |index: usize| {
            format!(
                "%s{at} = OpShiftRightLogical %u32 %r{index} %c1_\n%i{at} = OpBitwiseAnd %u32 %s{at} %c1_\n\
                 %p{at} = OpAccessChain %to_u32 %words %c0_ %i{at}\n"
            )
        };
        let loop_head = |at: usize| format!("OpBranch %head{at}\n%head{at} = OpLabel\n");
        let loop_end = |at: usize| {
            format!(
                "OpLoopMerge %after{at} %next{at} None\nOpBranchConditional %b{at} %next{at} %after{at}\n\
                 %next{at} = OpLabel\nOpBranch %head{at}\n%after{at} = OpLabel\n"
            )
        };
        let visible = "MakePointerVisible|NonPrivatePointer %c1_";
        match *step {
            Load { word, to } => {
                text += &chain("words", word);
                text += &format!("%r{to} = OpLoad %u32 %p{at} {visible}\n");
            }
            UnusedLoad { word } => {
                text += &chain("words", word);
                text += &format!("%u{at} = OpLoad %u32 %p{at} {visible}\n");
            }
            Store { word, value: stored } => {
                text += &chain("words", word);
                let stored = value(stored);
                text += &format!("OpStore %p{at} {stored} MakePointerAvailable|NonPrivatePointer %c1_\n");
            }
            LoadAt { index, to } => {
                text += &selected(index);
                text += &format!("%r{to} = OpLoad %u32 %p{at} {visible}\n");
            }
            StoreAt { index, value } => {
                text += &selected(index);
                text += &format!("OpStore %p{at} %c{value}_ MakePointerAvailable|NonPrivatePointer %c1_\n");
            }
            LoadFlag { flag, to, order } => {
                text += &chain("flags", flag);
                text += &format!("%r{to} = OpAtomicLoad %u32 %p{at} %c1_ {}\n", semantics(order));
            }
            StoreFlag { flag, value, order } => {
                text += &chain("flags", flag);
                text += &format!("OpAtomicStore %p{at} %c1_ {} %c{value}_\n", semantics(order));
            }
            AddToFlag { flag, to, order } => {
                text += &chain("flags", flag);
                text += &format!("%r{to} = OpAtomicIAdd %u32 %p{at} %c1_ {} %c1_\n", semantics(order));
            }
            WaitForFlag { flag, to } => {
                text += &chain("flags", flag);
                text += &format!(
                    "{} %r{to} = OpAtomicLoad %u32 %p{at} %c1_ %c0_\n%b{at} = OpINotEqual %bool %r{to} %c1_\n{}",
                    loop_head(at),
                    loop_end(at)
                );
            }
            HangIfZero { register } => {
                text +=
                    &format!("{} %b{at} = OpIEqual %bool %r{register} %c0_\n{}", loop_head(at), loop_end(at));
            }
            LoadWhileOne { word } => {
                text += &chain("words", word);
                text += &format!(
                    "{} %u{at} = OpLoad %u32 %p{at} {visible}\n%b{at} = OpIEqual %bool %u{at} %c1_\n{}",
                    loop_head(at),
                    loop_end(at)
                );
            }
            LoadVolatile { word, to } => {
                text += &chain("words", word);
                text += &format!("%r{to} = OpLoad %u32 %p{at} Volatile|{visible}\n");
            }
            StoreVolatile { word, value } => {
                text += &chain("words", word);
                text += &format!(
                    "OpStore %p{at} %c{value}_ Volatile|MakePointerAvailable|NonPrivatePointer %c1_\n"
                );
            }
            Fence(order) => text += &format!("OpMemoryBarrier %c1_ {}\n", semantics(order)),
            Guard { register } => {
                text += &format!(
                    "%b{at} = OpIEqual %bool %r{register} %c1_\nOpSelectionMerge %end{at} None\n\
                     OpBranchConditional %b{at} %then{at} %end{at}\n%then{at} = OpLabel\n"
                );
                guards.push(at);
            }
            Define { to, value: same } => {
                text += &format!("%r{to} = OpCopyObject %u32 {}\n", value(same));
            }
        }
        if let Some(register) = step.defined_register() {
            text += &format!(
                "%q{at} = OpAccessChain %to_u32 %results %c0_ %c{register}_\nOpStore %q{at} %r{register}\n"
            );
        }
    }
    for at in guards.iter().rev() {
        text += &format!("OpBranch %end{at}\n%end{at} = OpLabel\n");
    }
    text += "OpReturn\nOpFunctionEnd\n";
    entry_point::read_module(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the verdict if other invocations may access words and flags.
fn refinement_verdict(model: &Model, before: &[Step], after: &[Step]) -> RefineVerdict {
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
    fn random_step(&mut self, first: usize, known: &[usize]) -> Step {
        let (word, flag) = (first + self.random.below(2), first + self.random.below(2));
        let order = |ordered, this: &mut Steps| if this.random.below(2) == 0 { Relaxed } else { ordered };
        let kind = if self.registers >= CONSTANTS { 3 + self.random.below(4) } else { self.random.below(7) };
        // Half of the accesses after a load are at a position that it selects.
        if let (0 | 6, Some(index)) = (kind, known.get(self.random.below(known.len() + 1)).copied())
            && self.random.below(2) == 0
        {
            return match kind {
                0 => LoadAt { index, to: self.fresh_register() },
                _ => StoreAt { index, value: 3 + self.random.below(4) as u32 },
            };
        }
        match kind {
            0 | 1 => Load { word, to: self.fresh_register() },
            2 => LoadFlag { flag, order: order(Acquire, self), to: self.fresh_register() },
            3 => UnusedLoad { word },
            4 => StoreFlag { flag, value: 1 + self.random.below(2) as u32, order: order(Release, self) },
            5 => Fence([Acquire, Release, AcquireRelease][self.random.below(3)]),
            _ => {
                let from = known.get(self.random.below(known.len() + 2)).copied();
                Store { word, value: from.map_or(Constant(3 + self.random.below(4) as u32), Loaded) }
            }
        }
    }

    /// Returns `count` steps, with guards for some flags.
    fn random_kernel(&mut self, count: usize, first: usize, guards: bool) -> Vec<Step> {
        let mut steps = Vec::new();
        for _ in 0..count {
            let known: Vec<usize> = steps.iter().copied().filter_map(Step::defined_register).collect();
            let step = self.random_step(first, &known);
            steps.push(step);
            if let LoadFlag { to, .. } = step
                && guards
                && self.random.below(2) == 0
            {
                steps.push(Guard { register: to });
            }
        }
        steps
    }
}

/// A rule that rewrites the steps at a position, or `None` if it does not apply there.
type Rule = fn(&[Step]) -> Option<(usize, Vec<Step>)>;

/// The legal rules: name, and rewriting of the first steps of a list. Each is legal because an invocation
/// that observes the difference races with the kernel, or because it only adds order.
const LEGAL: [(&str, Rule); 20] = [
    ("swap plain accesses of two words", |steps| match *steps {
        [a, b, ..] if are_plain_accesses(a, b) && a.word() != b.word() && !reads_defined_register(a, b) => {
            Some((2, vec![b, a]))
        }
        _ => None,
    }),
    ("merge adjacent loads", |steps| match *steps {
        [a @ Load { word, to }, Load { word: same, to: second }, ..] if word == same => {
            Some((2, vec![a, Define { to: second, value: Loaded(to) }]))
        }
        _ => None,
    }),
    ("forward a store to a load", |steps| match *steps {
        [a @ Store { word, value }, Load { word: same, to }, ..] if word == same => {
            Some((2, vec![a, Define { to, value }]))
        }
        _ => None,
    }),
    ("remove an overwritten store", |steps| match *steps {
        [Store { word, .. }, b @ Store { word: same, .. }, ..] if word == same => Some((2, vec![b])),
        _ => None,
    }),
    ("remove an unused load", |steps| match *steps {
        [UnusedLoad { .. }, ..] => Some((1, Vec::new())),
        _ => None,
    }),
    ("repeat a load", |steps| match *steps {
        [a @ Load { word, .. }, ..] => Some((1, vec![a, UnusedLoad { word }])),
        _ => None,
    }),
    ("acquire at a relaxed load", |steps| match *steps {
        [LoadFlag { flag, to, order: Relaxed }, ..] => Some((1, vec![LoadFlag { flag, to, order: Acquire }])),
        _ => None,
    }),
    ("release at a relaxed store", |steps| match *steps {
        [StoreFlag { flag, value, order: Relaxed }, ..] => {
            Some((1, vec![StoreFlag { flag, value, order: Release }]))
        }
        _ => None,
    }),
    ("strengthen a memory barrier", |steps| match *steps {
        [Fence(Acquire | Release), ..] => Some((1, vec![Fence(AcquireRelease)])),
        _ => None,
    }),
    ("insert a memory barrier", |steps| steps.first().map(|first| (1, vec![Fence(AcquireRelease), *first]))),
    ("merge adjacent memory barriers", |steps| match *steps {
        [a @ Fence(order), Fence(same), ..] if order == same => Some((2, vec![a])),
        _ => None,
    }),
    ("merge adjacent relaxed loads", |steps| match *steps {
        [a @ LoadFlag { flag, to, .. }, LoadFlag { flag: same, to: second, order: Relaxed }, ..]
            if flag == same =>
        {
            Some((2, vec![a, Define { to: second, value: Loaded(to) }]))
        }
        _ => None,
    }),
    ("forward an atomic store to a relaxed load", |steps| match *steps {
        [a @ StoreFlag { flag, value, .. }, LoadFlag { flag: same, to, order: Relaxed }, ..]
            if flag == same =>
        {
            Some((2, vec![a, Define { to, value: Constant(value) }]))
        }
        _ => None,
    }),
    ("swap relaxed atomics of two flags", |steps| match *steps {
        [a, b, ..] => match (relaxed_flag(a), relaxed_flag(b)) {
            (Some(flag), Some(other)) if flag != other => Some((2, vec![b, a])),
            _ => None,
        },
        _ => None,
    }),
    ("swap a plain access and a relaxed atomic", |steps| match *steps {
        [a, b, ..] if !reads_defined_register(a, b) => {
            let is_pair = |plain: Step, atomic| plain.word().is_some() && relaxed_flag(atomic).is_some();
            (is_pair(a, b) || is_pair(b, a)).then(|| (2, vec![b, a]))
        }
        _ => None,
    }),
    ("move a plain access below an acquire", |steps| match *steps {
        [a, b @ LoadFlag { order: Acquire, .. }, ..] if a.word().is_some() => Some((2, vec![b, a])),
        _ => None,
    }),
    ("move a plain access above a release", |steps| match *steps {
        [a @ StoreFlag { order: Release, .. }, b, ..] if b.word().is_some() => Some((2, vec![b, a])),
        _ => None,
    }),
    ("merge adjacent loads at one variable position", |steps| match *steps {
        [a @ LoadAt { index, to }, LoadAt { index: same, to: second }, ..] if index == same => {
            Some((2, vec![a, Define { to: second, value: Loaded(to) }]))
        }
        _ => None,
    }),
    ("move an access at a variable position below an acquire", |steps| match *steps {
        [a, b @ LoadFlag { order: Acquire, .. }, ..] if a.is_at_variable_position() => Some((2, vec![b, a])),
        _ => None,
    }),
    ("swap loads of a word and of a variable position", |steps| match *steps {
        [a @ Load { .. }, b @ LoadAt { .. }, ..] | [a @ LoadAt { .. }, b @ Load { .. }, ..]
            if !reads_defined_register(a, b) =>
        {
            Some((2, vec![b, a]))
        }
        _ => None,
    }),
];

fn are_plain_accesses(a: Step, b: Step) -> bool {
    a.word().is_some() && b.word().is_some()
}

/// Returns the flag of a relaxed atomic.
fn relaxed_flag(step: Step) -> Option<usize> {
    match step {
        LoadFlag { flag, order: Relaxed, .. } | StoreFlag { flag, order: Relaxed, .. } => Some(flag),
        _ => None,
    }
}

fn reads_defined_register(a: Step, b: Step) -> bool {
    a.defined_register().is_some() && a.defined_register() == b.used_register()
}

#[test]
fn legal_transformations_never_break() {
    let model = Model::shipped("vulkan").unwrap().unwrap();
    let count = std::env::var("VK_LITMUS_TRANSFORMATIONS").map_or(80, |text| text.parse().unwrap());
    let mut proved = 0;
    for number in 0..count {
        let (name, rule) = LEGAL[number % LEGAL.len()];
        // Draws kernels until the rule applies to one.
        let applied = (0_u64..).find_map(|attempt| {
            let mut random = Random::new(number as u64 + 1_000_003 * attempt);
            let length = 3 + random.below(4);
            let mut steps = Steps { random, registers: 0 };
            let before = steps.random_kernel(length, 0, true);
            let from = steps.random.below(before.len());
            let (at, (taken, put)) = (from..before.len()).find_map(|at| Some((at, rule(&before[at..])?)))?;
            let mut after = before.clone();
            after.splice(at..at + taken, put);
            Some((before, after))
        });
        let (before, after) = applied.unwrap();
        match refinement_verdict(&model, &before, &after) {
            RefineVerdict::Refines | RefineVerdict::Stronger => proved += 1,
            RefineVerdict::Unknown | RefineVerdict::Failed => {}
            RefineVerdict::Breaks => panic!("{number}, {name}:\n{before:?}\n{after:?}"),
        }
    }
    println!("{count} legal transformations, {proved} proved");
    // If nothing were proved, there would be no false alarms either.
    assert!(4 * proved > 3 * count, "{proved} of {count} proved");
}

/// An illegal transformation: its name, and the steps before and after it.
type Illegal = (&'static str, Vec<Step>, Vec<Step>);

/// Returns the illegal transformations of `illegal.txt`.
fn illegal_transformations() -> Vec<Illegal> {
    let steps = |text: &str| text.split(';').map(|step| parse_step(step.trim())).collect();
    let rows = include_str!("illegal.txt").lines().filter(|line| !line.starts_with('#'));
    let row = |line: &'static str| {
        let (name, change) = line.split_once(": ").unwrap();
        let (before, after) = change.split_once(" => ").unwrap();
        (name, steps(before), steps(after))
    };
    rows.map(row).collect()
}

/// Parses a step; `illegal.txt` shows their forms.
fn parse_step(text: &str) -> Step {
    let register = |text: &str| text.strip_prefix('r').map(|number| number.parse().unwrap());
    let number = |text: &str| text.parse::<usize>().unwrap();
    // The memory, the index and the order of an element.
    let element = |text: &'_ str| {
        let (memory, rest) = text.split_once('[')?;
        let (index, order) = rest.split_once(']')?;
        Some((memory.to_owned(), index.to_owned(), parse_order(order.trim_start_matches('.'))))
    };
    let word_before = |text: &str| match text.split_once(' ') {
        Some((word, rest)) => (word.to_owned(), rest.to_owned()),
        None => (String::new(), text.to_owned()),
    };
    if let Some(order) = text.strip_prefix("fence.") {
        return Fence(parse_order(order));
    }
    if let Some(condition) = text.strip_prefix("if ") {
        return Guard { register: register(condition).unwrap() };
    }
    if let Some(condition) = text.strip_prefix("while ") {
        return match condition.strip_prefix("not ").and_then(register) {
            Some(register) => HangIfZero { register },
            None => LoadWhileOne { word: number(&element(condition).unwrap().1) },
        };
    }
    let (left, right) = text.split_once(" = ").unwrap();
    if let Some(to) = register(left) {
        let (word, place) = word_before(right);
        let Some((memory, index, order)) = element(&place) else {
            let value = register(right).map_or_else(|| Constant(right.parse().unwrap()), Loaded);
            return Define { to, value };
        };
        return match (word.as_str(), memory.as_str(), register(&index)) {
            ("add", ..) => AddToFlag { flag: number(&index), to, order },
            ("wait", ..) => WaitForFlag { flag: number(&index), to },
            ("volatile", ..) => LoadVolatile { word: number(&index), to },
            (_, "flags", _) => LoadFlag { flag: number(&index), to, order },
            (_, _, Some(index)) => LoadAt { index, to },
            (_, _, None) => Load { word: number(&index), to },
        };
    }
    let ((word, place), value) = (word_before(left), right.parse().unwrap());
    let (memory, index, order) = element(&place).unwrap();
    match (word.as_str(), memory.as_str(), register(&index)) {
        ("volatile", ..) => StoreVolatile { word: number(&index), value },
        (_, "flags", _) => StoreFlag { flag: number(&index), value, order },
        (_, _, Some(index)) => StoreAt { index, value },
        (_, _, None) => Store { word: number(&index), value: Constant(value) },
    }
}

fn parse_order(text: &str) -> MemoryOrder {
    match text {
        "acquire" => Acquire,
        "release" => Release,
        "acq_rel" => AcquireRelease,
        _ => Relaxed,
    }
}

#[test]
fn each_illegal_transformation_is_detected() {
    let model = Model::shipped("vulkan").unwrap().unwrap();
    let count = std::env::var("VK_LITMUS_TRANSFORMATIONS").map_or(33, |text| text.parse().unwrap());
    let kinds = illegal_transformations();
    let (mut found, mut tried) = (vec![0; kinds.len()], vec![0; kinds.len()]);
    for seed in 1..=count {
        let kind = seed % kinds.len();
        let (name, before, after) = &kinds[kind];
        let random = Random::new(seed as u64);
        // The core uses registers 0 to 2, and words and flags 0 and 1.
        let mut steps = Steps { random, registers: 3 };
        let (first, last) = (steps.random.below(3), steps.random.below(2));
        let (first, last) = (steps.random_kernel(first, 2, false), steps.random_kernel(last, 2, false));
        let around = |core: &[Step]| [&first[..], core, &last[..]].concat();
        tried[kind] += 1;
        match refinement_verdict(&model, &around(before), &around(after)) {
            RefineVerdict::Breaks => found[kind] += 1,
            RefineVerdict::Unknown | RefineVerdict::Failed => {}
            verdict => panic!("seed {seed}, {name}: {verdict:?}\n{first:?}\n{last:?}"),
        }
    }
    let all = kinds.iter().zip(found.iter().zip(&tried));
    for ((name, ..), (found, tried)) in all.clone() {
        println!("{name}: {found} of {tried}");
    }
    let missed: Vec<&str> =
        all.filter(|(_, (found, tried))| **found == 0 && **tried > 0).map(|((name, ..), _)| *name).collect();
    assert!(missed.is_empty(), "never found: {missed:?}");
}
