//! Random programs for rare cases: chains of availability and visibility, and small mixtures of all features.
//!
//! A seed determines its program permanently. Programs are text, so that a disagreement can be read and
//! stored. The grammars next to this module define their forms.

mod corners;
pub mod grammar;

pub use corners::Corner;
use grammar::Grammar;

/// Families of generated programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProgramFamily {
    /// A payload that travels from the first agent to the last one; the number counts the agents.
    Chain(usize),
    /// A mixture of small threads over few locations.
    Mixture,
    /// A chain whose links synchronize through different storage classes.
    Classes,
    /// Rounds of split barriers; the number counts the agents.
    Split(usize),
    /// Dispatches and host threads with API calls.
    Calls,
    /// Subgroup operations; the number counts the lanes.
    Subgroup(usize),
    Corner(Corner),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RandomProgram {
    pub family: ProgramFamily,
    /// The program, in the native dialect.
    pub text: String,
    /// Loop bound for judging the program.
    pub bound: u32,
}

pub fn generate_program(seed: u64) -> RandomProgram {
    derive_program(&mut SplitMix64(seed), "program")
}

/// The program of a seed with rounds of split barriers.
pub fn generate_split_program(seed: u64) -> RandomProgram {
    derive_program(&mut SplitMix64(seed), "split")
}

/// The program of a seed: one or two hosts and one to three dispatches with calls.
pub fn generate_calls_program(seed: u64) -> RandomProgram {
    derive_program(&mut SplitMix64(seed), "with-calls")
}

/// The program of a seed with subgroup operations.
pub fn generate_subgroup_program(seed: u64) -> RandomProgram {
    derive_program(&mut SplitMix64(seed), "subgroup")
}

/// The program of a seed with operations and barriers that branches skip: nested blocks, and lanes with separate
/// instructions in them.
pub fn generate_guarded_program(seed: u64) -> RandomProgram {
    derive_program(&mut SplitMix64(seed), "guarded")
}

/// Derives a program by a rule that names its family; draws again while the parser refuses the program.
fn derive_program(random: &mut SplitMix64, families: &str) -> RandomProgram {
    let grammar = Grammar::new(concat!(
        include_str!("generate/calls.grammar"),
        include_str!("generate/chains.grammar"),
        include_str!("generate/subgroups.grammar")
    ));
    loop {
        let rule = grammar.derive_with(families, |count| random.below(count));
        let mut text = grammar.derive_with(&rule, |count| random.below(count));
        if random.chance(60) {
            make_mistake(random, &mut text);
        }
        if litmus::parse(&text, "random.litmus").is_err() {
            continue;
        }
        let (name, count) = rule.split_once('-').unwrap_or((&rule, "1"));
        let count: usize = count.parse().unwrap_or(1);
        let (family, bound) = match name {
            "chain" => (ProgramFamily::Chain(count), random.pick(&[1, 2])),
            "calls" => (ProgramFamily::Calls, 1),
            "rounds" => (ProgramFamily::Split(count), 1),
            "lanes" | "blocks" => (ProgramFamily::Subgroup(count), 1),
            _ => (ProgramFamily::Mixture, random.pick(&[1, 2])),
        };
        return RandomProgram { family, text, bound };
    }
}

/// Replaces one scope, or removes one storage class, availability or visibility.
fn make_mistake(random: &mut SplitMix64, text: &mut String) {
    let word = random.pick(&[".sg", ".wg", ".qf", ".dv", ".dv", ".semsc", ".semav", ".semvis"]);
    let found: Vec<usize> = text.match_indices(word).map(|(at, _)| at).collect();
    let Some(at) = found.get(random.below(found.len())) else { return };
    let replacement = random.pick(&[".inv", ".sg", ".wg", ".qf", ".dv"]);
    match word {
        ".semsc" => text.replace_range(*at..at + word.len() + 1, ""),
        ".semav" | ".semvis" => text.replace_range(*at..at + word.len(), ""),
        _ => text.replace_range(*at..at + word.len(), replacement),
    }
}

/// The program of a seed in which some initial values are undefined and some storage classes of semantics ignored.
pub fn generate_undefined_program(seed: u64) -> RandomProgram {
    let mut random = SplitMix64(seed);
    loop {
        let program = derive_program(&mut random, "program");
        let mut lines = Vec::new();
        for line in program.text.split('|') {
            let class = random.pick(&[".semsc0", ".semsc1", ".semsc2", ".semsc3"]);
            let ignored = random.pick(&[".semsubgroup", ".semcrossworkgroup", ".sematomiccounter"]);
            lines.push(line.replacen(class, ignored, usize::from(random.chance(20))));
        }
        let mut text = lines.join("|");
        for (initial, percent) in [("x = 0;", 85), (" f = 0;", 20), (" g = 0;", 20), (" h = 0;", 20)] {
            let undefined = initial.replace('0', "?");
            text = text.replacen(initial, &undefined, usize::from(random.chance(percent)));
        }
        if litmus::parse(&text, "random.litmus").is_ok() {
            return RandomProgram { text, bound: 1, ..program };
        }
    }
}

/// The program of a seed: a chain whose links synchronize through different storage classes.
pub fn generate_classes_program(seed: u64) -> RandomProgram {
    let mut random = SplitMix64(seed);
    let grammar = Grammar::new(include_str!("generate/classes.grammar"));
    let text = grammar.derive_with("chain", |count| random.below(count));
    RandomProgram { family: ProgramFamily::Classes, text, bound: 1 }
}

/// Numbers from a seed (splitmix64).
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// True in this percentage of cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of the choices.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}
