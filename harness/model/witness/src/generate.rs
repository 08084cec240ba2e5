//! Random programs for rare cases: chains of availability and visibility, and small mixtures of all features.
//!
//! A seed determines its program permanently. Programs are text, so that a disagreement can be read and
//! stored.
//!
//! Long because all shapes share one writer with its choices of scopes, classes and flags.

mod columns;
mod corners;
pub mod grammar;
mod mixture;
mod tangles;

pub use columns::{AgentPlacement, ProgramColumn, ProgramColumns};
pub use corners::Corner;
use grammar::Grammar;
pub use grammar::render_rows;
pub use tangles::{generate_guarded_program, generate_subgroup_program};

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
    /// Dispatches and host threads with API calls; the number counts both.
    Calls(usize),
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
    let mut random = SplitMix64(seed);
    let mut writer = ProgramWriter::new(&mut random);
    let family = if writer.random.chance(65) {
        let agents = writer.random.pick(&[1, 2, 2, 2, 3, 3, 3, 3, 4, 4]);
        writer.emit_chain(agents);
        ProgramFamily::Chain(agents)
    } else {
        writer.emit_mixture();
        ProgramFamily::Mixture
    };
    let bound = if writer.has_loops && writer.random.chance(50) { 2 } else { 1 };
    RandomProgram { family, text: replace_refused_barrier(writer.render(&format!("random-{seed}"))), bound }
}

/// Replaces a subgroup barrier by a workgroup barrier if a single thread jumps over it, because that form is
/// refused.
fn replace_refused_barrier(text: String) -> String {
    if litmus::parse(&text, "random.litmus").is_ok() { text } else { text.replace(".execsg", "") }
}

/// The program of a seed in which some initial values are undefined and some storage classes of semantics ignored.
pub fn generate_undefined_program(seed: u64) -> RandomProgram {
    let mut random = SplitMix64(seed);
    let mut writer = ProgramWriter::new(&mut random);
    let family = if writer.random.chance(65) {
        let agents = writer.random.pick(&[1, 2, 2, 2, 3, 3]);
        writer.emit_chain(agents);
        ProgramFamily::Chain(agents)
    } else {
        writer.emit_mixture();
        ProgramFamily::Mixture
    };
    for index in [PAYLOAD, FLAGS, FLAGS + 1, FLAGS + 2] {
        let chance = if index == PAYLOAD { 85 } else { 20 };
        if writer.random.chance(chance) {
            let declaration = &mut writer.program.declarations[index];
            *declaration = declaration.replace("= 0", "= ?");
        }
    }
    // Storage classes that semantics ignore, with or without others.
    for line in writer.program.columns.iter_mut().flat_map(|agent| &mut agent.lines) {
        if writer.random.chance(6) {
            let class = writer.random.pick(&[".semsc0", ".semsc1", ".semsc2", ".semsc3"]);
            let ignored = writer.random.pick(&[".semsubgroup", ".semcrossworkgroup", ".sematomiccounter"]);
            *line = line.replacen(class, ignored, 1);
        }
    }
    RandomProgram {
        family,
        text: replace_refused_barrier(writer.render(&format!("undefined-{seed}"))),
        bound: 1,
    }
}

/// The program of a seed with rounds of split barriers.
pub fn generate_split_program(seed: u64) -> RandomProgram {
    let mut random = SplitMix64(seed);
    let mut writer = ProgramWriter::new(&mut random);
    let agents = writer.random.pick(&[1, 2, 2, 2, 2, 2, 3]);
    writer.emit_rounds(agents);
    RandomProgram {
        family: ProgramFamily::Split(agents),
        text: writer.render(&format!("split-{seed}")),
        bound: 1,
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

struct ProgramWriter<'a> {
    random: &'a mut SplitMix64,
    program: ProgramColumns,
    /// Names with their storage classes.
    names: Vec<(&'static str, usize)>,
    has_loops: bool,
    /// Probability that a choice is a synchronizing one, in percent.
    care_percent: usize,
    /// Choices until the deliberate mistake, in a program with exactly one.
    choices_until_mistake: Option<usize>,
    uses_calls: bool,
    uses_interlock: bool,
    /// True if an agent outside the chain also writes a flag.
    has_bystander: bool,
}

const PAYLOAD: usize = 0;
const ALIAS: usize = 1;
const FLAGS: usize = 2;

impl<'a> ProgramWriter<'a> {
    fn new(random: &'a mut SplitMix64) -> ProgramWriter<'a> {
        let care = random.pick(&[70, 85, 95, 100, 100]);
        let slip = if care == 100 { Some(1 + random.below(14)) } else { None };
        let main = random.pick(&[0, 0, 0, 1, 1, 2, 3]);
        let class = |random: &mut SplitMix64, usual: usize| {
            if random.chance(75) { usual } else { random.pick(&[0, 0, 1, 2, 3]) }
        };
        let payload = class(random, main);
        // Workgroup memory aliases workgroup memory only.
        let alias = match class(random, payload) {
            _ if payload == 1 => 1,
            1 => payload,
            other => other,
        };
        let flag = class(random, main);
        let mut names = vec![("x", payload), ("a", alias)];
        for name in ["f", "g", "h"] {
            names.push((name, class(random, flag)));
        }
        let mut declarations = Vec::new();
        let kinds = ["buffer ", "workgroup ", "image ", ""];
        // Only a declaration can make names of workgroup memory share storage.
        let declared = random.chance(50) || payload == 1;
        for (index, (name, class)) in names.iter().enumerate() {
            let kind = if declared { kinds[*class] } else { "" };
            let value = if index == ALIAS { "aliases x" } else { "= 0" };
            declarations.push(format!("{kind}{name} {value}"));
        }
        ProgramWriter {
            random,
            program: ProgramColumns { declarations, ..ProgramColumns::default() },
            names,
            has_loops: false,
            care_percent: care,
            choices_until_mistake: slip,
            uses_calls: false,
            uses_interlock: false,
            has_bystander: false,
        }
    }

    fn render(&mut self, name: &str) -> String {
        let used = |name: &str| {
            let ends = [format!(" {name}"), format!(" {name},")];
            self.program.columns.iter().flat_map(|agent| &agent.lines).any(|line| {
                ends.iter().any(|end| line.contains(end.as_str()) || line.ends_with(end.trim_end()))
            })
        };
        let question = if used("f") { "x == 0 /\\ f == 0" } else { "x == 0" };
        self.program.question = question.to_owned();
        self.program.render(name)
    }

    fn add_agent(&mut self, near: bool) -> usize {
        let columns = &mut self.program.columns;
        let placement = match columns.last() {
            Some(last) if near => last.placement,
            _ => {
                let queue_family = usize::from(self.random.chance(10));
                Some((queue_family, self.random.below(2), self.random.below(2)))
            }
        };
        columns.push(ProgramColumn { placement, ..ProgramColumn::default() });
        columns.len() - 1
    }

    fn emit(&mut self, agent: usize, line: impl Into<String>) {
        self.program.push_line(agent, line);
    }

    fn new_register(&mut self, agent: usize) -> String {
        self.program.columns[agent].new_register()
    }

    fn new_label(&mut self, agent: usize) -> String {
        self.program.columns[agent].guard_count += 1;
        format!("LC{:02}", self.program.columns[agent].guard_count - 1)
    }

    fn pick_scope(&mut self) -> &'static str {
        if self.uses_calls && self.random.chance(40) {
            return "call";
        }
        if self.uses_interlock && self.random.chance(40) {
            return "fi";
        }
        self.random.pick(&["inv", "sg", "sg", "wg", "wg", "wg", "qf", "qf", "dv", "dv", "dv"])
    }

    /// Returns true if the next choice is a careful one.
    fn choose_carefully(&mut self) -> bool {
        if let Some(remaining) = &mut self.choices_until_mistake {
            *remaining = remaining.saturating_sub(1);
            if *remaining == 0 {
                self.choices_until_mistake = None;
                return false;
            }
        }
        self.random.chance(self.care_percent)
    }

    /// Returns a scope that includes both agents; for a careless choice, any scope.
    fn pick_mutual_scope(&mut self, a: usize, b: usize) -> &'static str {
        if !self.choose_carefully() || self.uses_calls || self.uses_interlock {
            return self.pick_scope();
        }
        let reaching: &[&str] = match self.program.narrowest_common_scope(a, b) {
            "sg" => &["sg", "sg", "wg", "qf", "dv"],
            "wg" => &["wg", "wg", "qf", "dv"],
            "qf" => &["qf", "dv", "dv"],
            _ => &["dv"],
        };
        self.random.pick(reaching)
    }

    /// Storage classes of semantics: the given ones, for a careless choice without one, occasionally with more.
    fn pick_classes(&mut self, required: &[usize]) -> String {
        let mut set = 0u8;
        for class in required {
            if self.choose_carefully() {
                set |= 1 << class;
            }
        }
        if self.random.chance(if self.care_percent == 100 { 8 } else { 25 }) {
            set |= 1 << self.random.below(4);
        }
        if set == 0 {
            set = 1 << self.random.pick(&[0, 0, 1, 2]);
        }
        (0..4)
            .filter(|class| set & (1 << class) != 0)
            .fold(String::new(), |text, class| format!("{text}.semsc{class}"))
    }

    /// Semantics with the storage classes of the payload and of a flag, and flags by chance.
    fn pick_semantics(&mut self, order: &str, flag: usize, chance: usize) -> String {
        let required_classes = [self.names[PAYLOAD].1, self.names[flag].1];
        let classes = self.pick_classes(&required_classes);
        classes + &self.pick_flags(order, chance)
    }

    fn pick_flags(&mut self, order: &str, chance: usize) -> String {
        // A program with one deliberate mistake has nearly all flags, and none at the mistake.
        let chance = if self.care_percent < 100 {
            chance
        } else if self.choose_carefully() {
            92
        } else {
            0
        };
        let mut flags = String::new();
        if order != "acq" && self.random.chance(chance) {
            flags.push_str(".semav");
        }
        if order != "rel" && self.random.chance(chance) {
            flags.push_str(".semvis");
        }
        flags
    }

    fn emit_fence(&mut self, agent: usize, order: &str, other: usize, flag: usize) {
        let scope = self.pick_mutual_scope(agent, other);
        let semantics = self.pick_semantics(order, flag, 60);
        self.emit(agent, format!("membar.{order}.{scope}{semantics}"));
    }

    /// A plain or atomic access of the payload.
    fn emit_payload(&mut self, agent: usize, other: usize, write: bool) {
        let name = if self.random.chance(8) { ALIAS } else { PAYLOAD };
        let (name, class) = self.names[name];
        let scope = self.pick_mutual_scope(agent, other);
        let modifiers = match (self.random.below(100), write) {
            (0..12, _) => String::new(),
            (12..55, _) => ".nonpriv".to_owned(),
            (55..88, true) => format!(".av.{scope}"),
            (55..88, false) => format!(".vis.{scope}"),
            _ => format!(".atom.{scope}"),
        };
        let value = 1 + self.random.below(2);
        if self.random.chance(6) {
            let register = self.new_register(agent);
            self.emit(agent, format!("rmw.atom.{scope}.sc{class} {register}, {name}, {value}"));
        } else if write {
            self.emit(agent, format!("st{modifiers}.sc{class} {name}, {value}"));
        } else {
            let register = self.new_register(agent);
            self.emit(agent, format!("ld{modifiers}.sc{class} {register}, {name}"));
        }
    }

    /// Emits agents that arrive and wait, with accesses before, between and after.
    fn emit_rounds(&mut self, agents: usize) {
        let near = self.random.chance(40);
        for index in 0..agents {
            let agent = self.add_agent(near);
            if index > 0 && self.random.chance(80) {
                // Subgroups of one workgroup.
                let first = self.program.columns[0].placement;
                let place = &mut self.program.columns[agent].placement;
                *place = first.zip(*place).map(|(first, own)| (first.0, first.1, own.2));
            }
        }
        let rounds = self.random.pick(&[1, 1, 2, 2]);
        let execution = self.random.pick(&["", "", ".execwg", ".execsg"]);
        // Few accesses, or there are too many executions to try one by one.
        let accesses = if agents == 3 { 12 } else { 25 };
        for agent in 0..agents {
            let other = (agent + 1) % agents;
            // Other instructions are other branches, which matters in subgroups.
            let first = if self.random.chance(12) { 10 } else { 0 };
            let own_rounds = if self.random.chance(6) { 1 } else { rounds };
            let execution = if self.random.chance(6) { ".execsg" } else { execution };
            for round in 0..own_rounds {
                let id = first + round;
                self.emit_optional_access(agent, other, accesses + 10);
                let fenced = self.random.chance(20);
                if fenced || self.random.chance(8) {
                    self.emit_fence(agent, "rel", other, FLAGS);
                }
                self.emit_barrier_half(agent, other, "arrive", execution, fenced, id);
                if self.random.chance(8) {
                    let order = self.random.pick(&["rel", "acq"]);
                    self.emit_fence(agent, order, other, FLAGS);
                }
                self.emit_optional_access(agent, other, accesses);
                // An arrival without a wait.
                if round + 1 == own_rounds && self.random.chance(10) {
                    break;
                }
                let fenced = self.random.chance(20);
                self.emit_barrier_half(agent, other, "wait", execution, fenced, id);
                if fenced || self.random.chance(8) {
                    self.emit_fence(agent, "acq", other, FLAGS);
                }
            }
            self.emit_optional_access(agent, other, accesses + 20);
        }
    }

    fn emit_optional_access(&mut self, agent: usize, other: usize, percent: usize) {
        if self.random.chance(percent) {
            let write = self.random.chance(45);
            self.emit_payload(agent, other, write);
        }
    }

    /// Emits a half of a split barrier, without semantics if a fence next to it has them.
    fn emit_barrier_half(
        &mut self,
        agent: usize,
        other: usize,
        half: &str,
        execution: &str,
        fenced: bool,
        id: usize,
    ) {
        let scope = self.pick_mutual_scope(agent, other);
        if fenced || self.random.chance(8) {
            return self.emit(agent, format!("cbar.{half}{execution}.{scope} {id}"));
        }
        let order = if half == "arrive" { "rel" } else { "acq" };
        let semantics = self.pick_semantics(order, FLAGS, 70);
        self.emit(agent, format!("cbar.{half}{execution}.{order}.{scope}{semantics} {id}"));
    }

    /// A device domain operation.
    fn emit_device_operation(&mut self, agent: usize, available: bool) {
        let line = match (available, self.random.below(10)) {
            (true, 0..7) => "avdevice",
            (true, 7) => "avdevice.none",
            (true, 8) => "avdevice.shader_write",
            (true, _) => "avdevice.shader_read",
            (false, 0..7) => "visdevice",
            (false, 7) => "visdevice.none",
            (false, 8) => "visdevice.shader_read",
            (false, _) => "visdevice.shader_write",
        };
        self.emit(agent, line);
    }

    fn emit_chain(&mut self, agents: usize) {
        for index in 0..agents.max(1) {
            let near = index > 0 && self.random.chance(40);
            self.add_agent(near);
        }
        match self.random.below(100) {
            0..7 if agents > 1 => self.uses_calls = true,
            7..14 if agents > 1 => self.uses_interlock = true,
            _ => {}
        }
        if self.uses_calls {
            return self.emit_call_chain(agents);
        }
        if self.uses_interlock {
            return self.emit_interlock_chain(agents);
        }
        if self.random.chance(85) || agents < 2 {
            if self.random.chance(12) {
                self.emit_payload(0, agents - 1, false);
            }
            let write = self.random.chance(85);
            self.emit_payload(0, (agents > 1).into(), write);
        } else {
            self.emit_payload(0, 1, false);
        }
        if agents == 1 {
            for _ in 0..1 + self.random.below(3) {
                let write = self.random.chance(50);
                if self.random.chance(25) {
                    self.emit_device_operation(0, write);
                }
                self.emit_payload(0, 0, write);
            }
            return;
        }
        self.has_bystander = agents < 4 && self.random.chance(15);
        let mut relayed_flag: Option<usize> = None;
        for from in 0..agents - 1 {
            let to = from + 1;
            let flag = relayed_flag.unwrap_or(FLAGS + from.min(2));
            // A read-modify-write of the middle agent passes the same flag on.
            let passes_on = to + 1 < agents && self.random.chance(35);
            self.emit_link(from, to, flag, relayed_flag.is_some(), passes_on);
            relayed_flag = passes_on.then_some(flag);
        }
        let last = agents - 1;
        let write = self.random.chance(30);
        if self.random.chance(15) {
            let before = self.random.below(last);
            self.emit_payload(last, before, !write);
        }
        self.emit_payload(last, last - 1, write);
        if self.has_bystander {
            self.emit_bystander(last);
        }
        self.close_guards();
    }

    /// Emits an agent that continues or interrupts the release sequence of a flag.
    fn emit_bystander(&mut self, last: usize) {
        let near = self.random.chance(60);
        let agent = self.add_agent(near);
        let (name, class) = self.names[FLAGS + self.random.below(last.min(3))];
        for _ in 0..1 + self.random.below(2) {
            let other = self.random.below(last + 1);
            let scope = self.pick_mutual_scope(agent, other);
            let register = self.new_register(agent);
            let line = match self.random.below(3) {
                0 => format!("st.atom.{scope}.sc{class} {name}, 4"),
                1 => format!("rmw.atom.{scope}.sc{class} {register}, {name}, 5"),
                _ => format!("rmw.atom.{scope}.sc{class}.add {register}, {name}, 1"),
            };
            self.emit(agent, line);
        }
    }

    /// Synchronizes one agent with the next.
    fn emit_link(&mut self, from: usize, to: usize, flag: usize, sent: bool, passes_on: bool) {
        let kind = self.random.below(100);
        // Synchronization from outside the shaders (system-synchronizes-with), without a flag.
        if !sent && !passes_on && kind < 18 {
            if self.random.chance(45) {
                self.emit_device_operation(from, true);
            }
            let is_whole_thread = self.random.chance(60);
            // Between two instructions: from the last one so far of one agent to the next one of
            // the other.
            let [first, second] = [from, to].map(|agent| self.program.columns[agent].lines.len());
            self.program.system_sync.push(if is_whole_thread || first == 0 {
                format!("ssw P{from} P{to}")
            } else {
                format!("ssw P{from}.{} P{to}.{second}", first - 1)
            });
            if self.random.chance(50) {
                self.emit_device_operation(to, false);
            } else if !is_whole_thread {
                self.emit_fence(to, "acq_rel", to, flag);
            }
            return;
        }
        if !sent && !passes_on && kind < 31 {
            return self.emit_barrier_link(from, to, flag);
        }
        if !sent {
            self.emit_release(from, to, flag);
        }
        if passes_on {
            self.emit_relay(from, to, flag);
        } else {
            self.emit_acquire(from, to, flag);
        }
    }

    fn emit_barrier_link(&mut self, from: usize, to: usize, flag: usize) {
        let id = from;
        let execution = self.random.pick(&["", "", "", ".execsg", ".execqf", ".execdv"]);
        // Usually the barrier has the semantics; a barrier without them needs fences next to it.
        let is_bare = self.random.chance(30);
        if is_bare || self.random.chance(15) {
            self.emit_fence(from, "rel", to, flag);
        }
        for agent in [from, to] {
            let other = if agent == from { to } else { from };
            let scope = if is_bare { self.pick_scope() } else { self.pick_mutual_scope(agent, other) };
            if is_bare {
                self.emit(agent, format!("cbar{execution}.{scope} {id}"));
            } else {
                let one_sided = if agent == from { "rel" } else { "acq" };
                let order = self.random.pick(&["acq_rel", "acq_rel", one_sided, "rel"]);
                let semantics = self.pick_semantics(order, flag, 60);
                self.emit(agent, format!("cbar{execution}.{order}.{scope}{semantics} {id}"));
            }
        }
        if is_bare || self.random.chance(15) {
            self.emit_fence(to, "acq", from, flag);
        }
    }

    fn emit_release(&mut self, from: usize, to: usize, flag: usize) {
        if self.random.chance(10) {
            self.emit_device_operation(from, true);
        }
        let fenced = self.random.chance(30);
        if fenced || self.random.chance(12) {
            let order = self.random.pick(&["rel", "rel", "acq_rel", "acq"]);
            self.emit_fence(from, order, to, flag);
        }
        let scope = self.pick_mutual_scope(from, to);
        let (name, class) = self.names[flag];
        if fenced {
            self.emit(from, format!("st.atom.{scope}.sc{class} {name}, 1"));
        } else if self.random.chance(15) {
            let order = self.random.pick(&["rel", "acq_rel"]);
            let semantics = self.pick_semantics(order, flag, 60);
            let register = self.new_register(from);
            self.emit(from, format!("rmw.atom.{order}.{scope}.sc{class}{semantics} {register}, {name}, 1"));
        } else {
            let semantics = self.pick_semantics("rel", flag, 60);
            self.emit(from, format!("st.atom.rel.{scope}.sc{class}{semantics} {name}, 1"));
        }
    }

    /// A read-modify-write that receives and sends.
    fn emit_relay(&mut self, from: usize, to: usize, flag: usize) {
        let scope = self.pick_mutual_scope(from, to);
        let (name, class) = self.names[flag];
        let order = self.random.pick(&["acq_rel", "acq_rel", "acq_rel", "rel", "acq", ""]);
        let register = self.new_register(to);
        if self.random.chance(25) {
            self.emit_fence(to, "acq_rel", from, flag);
        }
        let modifiers = if order.is_empty() {
            format!("{scope}.sc{class}")
        } else {
            let semantics = self.pick_semantics(order, flag, 70);
            format!("{order}.{scope}.sc{class}{semantics}")
        };
        let line = match self.random.below(10) {
            0..4 => format!("rmw.atom.{modifiers}.add {register}, {name}, 1"),
            4..8 => format!("rmw.atom.{modifiers} {register}, {name}, 2"),
            _ if order.starts_with("acq") && self.random.chance(50) => {
                format!("rmw.atom.{modifiers}.cas.uneq_acq {register}, {name}, 1, 2")
            }
            _ => format!("rmw.atom.{modifiers}.cas {register}, {name}, 1, 2"),
        };
        self.emit(to, line);
        if self.random.chance(25) {
            self.emit_fence(to, "acq_rel", from, flag);
        }
        self.emit_guard(to, &register, 1, 25);
    }

    fn emit_acquire(&mut self, from: usize, to: usize, flag: usize) {
        let (name, class) = self.names[flag];
        let register = self.new_register(to);
        let scope = self.pick_mutual_scope(to, from);
        let fenced = self.random.chance(30);
        let load = if fenced {
            format!("ld.atom.{scope}.sc{class} {register}, {name}")
        } else if self.random.chance(12) {
            let order = self.random.pick(&["acq", "acq_rel"]);
            let semantics = self.pick_semantics(order, flag, 60);
            format!("rmw.atom.{order}.{scope}.sc{class}{semantics} {register}, {name}, 3")
        } else {
            let semantics = self.pick_semantics("acq", flag, 60);
            format!("ld.atom.acq.{scope}.sc{class}{semantics} {register}, {name}")
        };
        let expected = if self.random.chance(90) { 1 } else { self.random.below(3) };
        if self.random.chance(8) {
            let label = self.new_label(to);
            self.emit(to, format!("{label}:"));
            self.emit(to, load);
            self.emit(to, format!("bne {register}, {expected}, {label}"));
            self.has_loops = true;
        } else {
            self.emit(to, load);
            self.emit_guard(to, &register, expected, 70);
        }
        if fenced || self.random.chance(12) {
            let order = self.random.pick(&["acq", "acq", "acq_rel", "rel"]);
            self.emit_fence(to, order, from, flag);
        }
        if self.random.chance(10) {
            self.emit_device_operation(to, false);
        }
    }

    /// Skips the rest of the thread if the register does not hold the expected value.
    fn emit_guard(&mut self, agent: usize, register: &str, expected: usize, percent: usize) {
        // The label is at the end of the thread.
        if self.random.chance(if self.care_percent == 100 { percent.max(90) } else { percent }) {
            let label = self.new_label(agent);
            if self.has_bystander && self.random.chance(70) {
                self.emit(agent, format!("beq {register}, 0, {label}"));
            } else {
                let relation = if expected > 0 && self.random.chance(10) { "blt" } else { "bne" };
                self.emit(agent, format!("{relation} {register}, {expected}, {label}"));
            }
        }
    }

    fn close_guards(&mut self) {
        for agent in &mut self.program.columns {
            for label in 0..agent.guard_count {
                let name = format!("LC{label:02}:");
                if !agent.lines.contains(&name) {
                    agent.lines.push(name);
                }
            }
        }
    }

    fn emit_call_chain(&mut self, agents: usize) {
        self.emit_payload(0, 1, true);
        self.emit_fence(0, "rel", 1, FLAGS);
        let callees: Vec<String> = (1..agents).map(|callee| format!("P{callee}")).collect();
        let nested = agents == 3 && self.random.chance(40);
        self.emit(0, format!("call {}", if nested { "P1".to_owned() } else { callees.join(", ") }));
        for callee in 1..agents {
            if self.random.chance(80) {
                self.emit_fence(callee, "acq", 0, FLAGS);
            }
            if callee > 1 && self.random.chance(50) {
                self.emit_acquire(callee - 1, callee, FLAGS);
            }
            let write = self.random.chance(40);
            // A thread that calls or is called has no jumps.
            self.program.columns[callee]
                .lines
                .retain(|line| !line.starts_with('b') && !line.starts_with("LC"));
            self.emit_payload(callee, 0, write);
            if self.random.chance(60) {
                self.emit_fence(callee, "rel", 0, FLAGS);
            }
            if callee + 1 < agents && self.random.chance(50) {
                self.emit_release(callee, callee + 1, FLAGS);
            }
            if nested && callee == 1 {
                self.emit(1, "call P2");
            }
        }
        if self.random.chance(60) {
            self.emit_fence(0, "acq", 1, FLAGS);
            let write = self.random.chance(40);
            self.emit_payload(0, 1, write);
        }
        // Loops were removed together with the jumps.
        self.has_loops = false;
    }

    fn emit_interlock_chain(&mut self, agents: usize) {
        let order = if agents <= 3 && self.random.chance(35) { ".unordered" } else { "" };
        for agent in 0..agents {
            let section = usize::from(self.random.chance(12));
            let before = self.random.chance(15);
            let write = if agent == 0 { self.random.chance(85) } else { self.random.chance(35) };
            if before {
                self.emit_payload(agent, 0, write);
            }
            self.emit(agent, format!("interlock.begin{order} {section}"));
            if agent > 0 && self.random.chance(30) {
                self.emit_fence(agent, "acq", agent - 1, FLAGS);
            }
            if !before {
                self.emit_payload(agent, 0, write);
            }
            if self.random.chance(40) {
                self.emit_fence(agent, "rel", agent, FLAGS);
            }
            if self.random.chance(90) {
                self.emit(agent, format!("interlock.end{order} {section}"));
            }
            if self.random.chance(15) {
                self.emit_release(agent, 0, FLAGS);
            }
        }
    }
}
