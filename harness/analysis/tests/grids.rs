//! The grid walk against the model, which is exhaustive: both agree on random small kernels.
//!
//! The test also counts the racy kernels that 1, 10 and 100 schedules find. `VK_LITMUS_RANDOM_KERNELS` is the
//! number of kernels, or a range of seeds: `1-20000`.

use entry_point::{AnalysisOptions, FindingKind, Problem, Refusal};
use litmus::Race;
use model::{Budget, Model};
use symbolic::ModelQuery;
use walk::RaceVerdict;

/// Marsaglia's xorshift64.
pub struct Random(u64);

impl Random {
    /// Returns a generator for a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % bound
    }

    fn choose<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// The header of every kernel; `LOCAL` is the workgroup size, `MODEL` the memory model.
const HEADER: &str = include_str!("templates/grids.spvasm");

/// The access chains of a function, whose names begin with `prefix`: the element of the invocation and the
/// element of `other`.
fn access_chains(prefix: &str, invocation: &str) -> String {
    let mut text = format!("%{prefix}other = OpBitwiseXor %u32 {invocation} %1\n");
    for (name, index) in
        [("d0", "%0"), ("d1", "%1"), ("dme", invocation), ("dother", &format!("%{prefix}other"))]
    {
        text += &format!("%{prefix}{name} = OpAccessChain %to_u32 %data %0 {index}\n");
    }
    for (name, index) in [("s0", "%0"), ("sme", invocation), ("sother", &format!("%{prefix}other"))] {
        text += &format!("%{prefix}{name} = OpAccessChain %to_shared %shared {index}\n");
    }
    text
}

/// A kernel under construction.
struct Kernel {
    random: Random,
    /// True for the Vulkan memory model, false for GLSL450.
    uses_vulkan_model: bool,
    /// Number of unique names.
    name_count: u32,
    functions: String,
    /// True if plain accesses mostly access the element of the invocation.
    prefers_own_element: bool,
    synchronization: Synchronization,
}

/// The synchronization between invocations.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Synchronization {
    Barriers,
    /// Control barriers and subgroup barriers, in any control flow.
    Subgroups,
    SplitBarriers,
    /// Interlocked sections of fragments.
    InterlockedSections,
}

/// The position of a statement.
#[derive(Clone, Copy)]
struct StatementContext<'a> {
    /// The prefix of access chain names.
    prefix: &'a str,
    invocation: &'a str,
    depth: u32,
    /// True if all invocations of a workgroup reach it.
    is_uniform: bool,
}

impl Kernel {
    fn choose_for_model<'a>(&mut self, vulkan: &[&'a str], other: &[&'a str]) -> &'a str {
        let all = if self.uses_vulkan_model { vulkan } else { other };
        self.random.choose(all)
    }

    /// Returns the operands of a plain access.
    fn random_operands(&mut self, pointer: &str, scope: &str) -> String {
        match (self.uses_vulkan_model, self.random.below(6)) {
            (false, _) | (_, 0) => String::new(),
            (_, 1 | 2) => "NonPrivatePointer".to_owned(),
            _ => format!("NonPrivatePointer|{pointer} {scope}"),
        }
    }

    /// Adds a branch on a loaded value or on the invocation index.
    fn random_condition(
        &mut self,
        inside: StatementContext<'_>,
        place: &str,
        scope: &str,
        number: u32,
    ) -> String {
        let semantics = self.choose_for_model(&["%0", "%66", "%16450"], &["%0", "%66"]);
        match self.random.below(2) {
            0 => {
                let which = self.random.choose(&["%0", "%1"]);
                format!("%c{number} = OpIEqual %bool {} {which}\n", inside.invocation)
            }
            _ => format!(
                "%v{number} = OpAtomicLoad %u32 {place} {scope} {semantics}\n%c{number} = OpINotEqual %bool %v{number} %0\n"
            ),
        }
    }

    fn random_statements(&mut self, count: usize, inside: StatementContext<'_>) -> String {
        let mut text = String::new();
        for _ in 0..count {
            text += &self.random_statement(inside);
        }
        text
    }

    fn random_statement(&mut self, inside: StatementContext<'_>) -> String {
        self.name_count += 1;
        let number = self.name_count;
        // Fragments have only buffers, and an index below the number of primitives.
        let fragments = self.synchronization == Synchronization::InterlockedSections;
        let names = match fragments {
            true => ["d0", "d1", "dme", "dother", "d0", "dme", "dme"],
            false => ["d0", "d1", "dme", "dother", "s0", "sme", "sother"],
        };
        let what = self.random.below(18);
        let own = self.prefers_own_element && what < 6 && self.random.below(6) > 0;
        let place =
            if own { [names[2], names[5]][self.random.below(2)] } else { names[self.random.below(7)] };
        let place = format!("%{}{place}", inside.prefix);
        // Scopes: 2 workgroup, 5 queue family, 3 subgroup, 1 device.
        let scope = match fragments {
            true => self.choose_for_model(&["%5"], &["%1"]),
            false => self.choose_for_model(&["%2", "%5", "%5", "%3"], &["%2", "%1", "%1", "%3"]),
        };
        let both = self.choose_for_model(
            &["%264", "%72", "%328", "%24840", "%24648", "%24904", "%0"],
            &["%264", "%72", "%328", "%0"],
        );
        let deeper = StatementContext { depth: inside.depth + 1, ..inside };
        match what {
            0..3 => format!("OpStore {place} %1 {}\n", self.random_operands("MakePointerAvailable", scope)),
            3..6 => {
                format!(
                    "%l{number} = OpLoad %u32 {place} {}\n",
                    self.random_operands("MakePointerVisible", scope)
                )
            }
            6 => {
                let semantics =
                    self.choose_for_model(&["%0", "%24648", "%24904", "%66"], &["%0", "%72", "%328", "%66"]);
                let operation = self.random.choose(&["IAdd", "IAdd", "Exchange", "UMax", "Or"]);
                format!("%a{number} = OpAtomic{operation} %u32 {place} {scope} {semantics} %1\n")
            }
            7 => {
                let semantics = self.choose_for_model(&["%0", "%68", "%8260"], &["%0", "%68"]);
                format!("OpAtomicStore {place} {scope} {semantics} %1\n")
            }
            8 => {
                let semantics = self.choose_for_model(&["%0", "%24648", "%66"], &["%0", "%72", "%66"]);
                format!("%a{number} = OpAtomicCompareExchange %u32 {place} {scope} {semantics} %0 %1 %0\n")
            }
            9 | 10 if inside.is_uniform && self.synchronization == Synchronization::SplitBarriers => {
                let who = self.random.choose(&["%2", "%2", "%3"]);
                let memory = self.choose_for_model(&["%2", "%2", "%5"], &["%2", "%2", "%1"]);
                let release = self.choose_for_model(
                    &["%260", "%68", "%324", "%8516", "%8516", "%8260", "%0"],
                    &["%260", "%68", "%324", "%324", "%0"],
                );
                let acquire = self.choose_for_model(
                    &["%258", "%66", "%322", "%16706", "%16706", "%16450", "%0"],
                    &["%258", "%66", "%322", "%322", "%0"],
                );
                let count = self.random.below(3);
                let gap = self.random_statements(count, StatementContext { is_uniform: false, ..deeper });
                format!(
                    "OpControlBarrierArriveEXT {who} {memory} {release}\n{gap}OpControlBarrierWaitEXT {who} {memory} {acquire}\n"
                )
            }
            9 | 10
                if self.synchronization == Synchronization::Subgroups
                    && (!inside.is_uniform || self.random.below(2) == 0) =>
            {
                let memory = self.random.choose(&["%3", "%3", "%2"]);
                format!("OpControlBarrier %3 {memory} {both}\n")
            }
            9 | 10 if inside.is_uniform && !fragments => {
                let memory = self.choose_for_model(&["%2", "%2", "%2", "%5"], &["%2", "%2", "%2", "%1"]);
                format!("OpControlBarrier %2 {memory} {both}\n")
            }
            11 => {
                let scope =
                    if fragments { scope } else { self.choose_for_model(&["%2", "%5"], &["%2", "%1"]) };
                let both =
                    self.choose_for_model(&["%264", "%72", "%328", "%24904"], &["%264", "%72", "%328"]);
                format!("OpMemoryBarrier {scope} {both}\n")
            }
            // An element whose index is loaded from memory.
            12 => {
                let semantics = self.choose_for_model(&["%0", "%66", "%16450"], &["%0", "%66"]);
                let way = self.random_operands("MakePointerAvailable", scope);
                format!(
                    "%v{number} = OpAtomicLoad %u32 {place} {scope} {semantics}\n%i{number} = OpBitwiseAnd %u32 %v{number} %1\n\
                     %p{number} = OpAccessChain %to_u32 %data %0 %i{number}\nOpStore %p{number} %1 {way}\n"
                )
            }
            13 | 14 if inside.depth < 2 => {
                let condition = self.random_condition(inside, &place, scope, number);
                let count = 1 + self.random.below(2);
                let body = self.random_statements(count, StatementContext { is_uniform: false, ..deeper });
                format!(
                    "{condition}OpSelectionMerge %m{number} None\nOpBranchConditional %c{number} %t{number} %m{number}\n\
                     %t{number} = OpLabel\n{body}OpBranch %m{number}\n%m{number} = OpLabel\n"
                )
            }
            // Loops with a uniform or a divergent trip count.
            15 if inside.depth < 2 => {
                let (bodies, uniform) = match self.random.below(3) {
                    0 => (inside.invocation, false),
                    _ => ("%2", inside.is_uniform),
                };
                let count = 1 + self.random.below(2);
                let body = self.random_statements(count, StatementContext { is_uniform: uniform, ..deeper });
                format!(
                    "OpBranch %b{number}\n%b{number} = OpLabel\nOpBranch %h{number}\n%h{number} = OpLabel\n\
                     %i{number} = OpPhi %u32 %0 %b{number} %n{number} %k{number}\nOpLoopMerge %m{number} %k{number} None\n\
                     OpBranch %q{number}\n%q{number} = OpLabel\n%c{number} = OpULessThan %bool %i{number} {bodies}\n\
                     OpBranchConditional %c{number} %t{number} %m{number}\n%t{number} = OpLabel\n{body}OpBranch %k{number}\n\
                     %k{number} = OpLabel\n%n{number} = OpIAdd %u32 %i{number} %1\nOpBranch %h{number}\n%m{number} = OpLabel\n"
                )
            }
            16 if inside.depth < 2 => {
                let (one, other) = (1 + self.random.below(2), self.random.below(2));
                let within = StatementContext { is_uniform: false, ..deeper };
                let (one, other) =
                    (self.random_statements(one, within), self.random_statements(other, within));
                format!(
                    "OpSelectionMerge %m{number} None\nOpSwitch {} %m{number} 0 %t{number} 1 %e{number}\n%t{number} = OpLabel\n\
                     {one}OpBranch %m{number}\n%e{number} = OpLabel\n{other}OpBranch %m{number}\n%m{number} = OpLabel\n",
                    inside.invocation
                )
            }
            17 if inside.depth < 2 => {
                let (at, me) = (format!("f{number}_"), format!("%of{number}"));
                let count = 1 + self.random.below(3);
                let body = self
                    .random_statements(count, StatementContext { prefix: &at, invocation: &me, ..deeper });
                self.functions += &format!(
                    "%f{number} = OpFunction %void None %of_number\n{me} = OpFunctionParameter %u32\n%entry{number} = OpLabel\n\
                     {}{body}OpReturn\nOpFunctionEnd\n",
                    access_chains(&at, &me)
                );
                let argument = [inside.invocation, "%0", &format!("%{}other", inside.prefix)]
                    [self.random.below(3)]
                .to_owned();
                format!("%r{number} = OpFunctionCall %void %f{number} {argument}\n")
            }
            _ => String::new(),
        }
    }
}

/// Returns a random kernel with its grid.
fn random_kernel(seed: u64, meeting: Synchronization) -> (String, AnalysisOptions) {
    let mut random = Random::new(seed);
    let shapes = [(2, 1), (2, 2), (2, 2), (1, 2), (1, 3), (4, 1), (2, 3)];
    let (local, workgroups) = shapes[random.below(shapes.len())];
    let (vulkan, coherent, careful) = (random.below(4) > 0, random.below(2) == 0, random.below(3) > 0);
    let mut kernel = Kernel {
        random,
        uses_vulkan_model: vulkan,
        name_count: 100,
        functions: String::new(),
        prefers_own_element: careful,
        synchronization: meeting,
    };
    let (model, capability) =
        if vulkan { ("Vulkan", "OpCapability VulkanMemoryModel") } else { ("GLSL450", "") };
    let coherent = if !vulkan && coherent { "OpMemberDecorate %block 0 Coherent" } else { "" };
    let mut text = HEADER.replace("CAPABILITY", capability).replace("MODEL", model);
    text = text.replace("LOCAL", &local.to_string()).replace("COHERENT", coherent);
    if meeting == Synchronization::InterlockedSections {
        return random_fragment_kernel(kernel, text);
    }
    text += "%main = OpFunction %void None %function\n%entry = OpLabel\n%lane = OpLoad %u32 %id\n\
             %groups = OpLoad %v3u32 %group\n%first = OpCompositeExtract %u32 %groups 0\n";
    // Some kernels use an index over the whole grid, if workgroup memory is large enough.
    let through = kernel.random.below(3) == 0;
    text += match (through, local) {
        (true, 1) => "%me = OpIAdd %u32 %lane %first\n",
        _ => "%me = OpIAdd %u32 %lane %0\n",
    };
    text += &access_chains("", "%me");
    let count = 2 + kernel.random.below(6);
    text += &kernel.random_statements(
        count,
        StatementContext { prefix: "", invocation: "%me", depth: 0, is_uniform: true },
    );
    text += "OpReturn\nOpFunctionEnd\n";
    text += &kernel.functions;
    let subgroup_size = match meeting {
        Synchronization::Subgroups => Some(2 << kernel.random.below(2)),
        _ => Some(1 << kernel.random.below(if local > 1 { 2 } else { 1 })),
    };
    (text, AnalysisOptions { grid: Some([workgroups, 1, 1]), subgroup_size, ..AnalysisOptions::default() })
}

/// Returns a random fragment kernel: a few pixels and primitives, with one section.
fn random_fragment_kernel(mut kernel: Kernel, mut text: String) -> (String, AnalysisOptions) {
    let shapes = [(1, 2), (1, 2), (1, 2), (1, 3), (2, 2)];
    let (pixels, primitives) = shapes[kernel.random.below(shapes.len())];
    let order = kernel.random.choose(&["PixelInterlockOrderedEXT", "PixelInterlockUnorderedEXT"]);
    let from = text.find("OpExecutionMode").unwrap_or(0);
    let line = text[from..].lines().next().unwrap_or("").to_owned();
    text =
        text.replace(&line, &format!("OpExecutionMode %main OriginUpperLeft\nOpExecutionMode %main {order}"));
    text = text.replace("GLCompute", "Fragment").replace("LocalInvocationIndex", "PrimitiveId");
    text = text.replace("OpDecorate %group BuiltIn WorkgroupId\n", "");
    text += "%main = OpFunction %void None %function\n%entry = OpLabel\n%groups = OpLoad %u32 %id\n%me = OpIAdd %u32 %groups %0\n";
    text += &access_chains("", "%me");
    let inside = StatementContext { prefix: "", invocation: "%me", depth: 0, is_uniform: false };
    for end in
        ["OpBeginInvocationInterlockEXT\n", "OpEndInvocationInterlockEXT\n", "OpReturn\nOpFunctionEnd\n"]
    {
        let count = kernel.random.below(4);
        text += &kernel.random_statements(count, inside);
        text += end;
    }
    text += &kernel.functions;
    (text, AnalysisOptions { grid: Some([pixels, 1, primitives]), ..AnalysisOptions::default() })
}

/// Returns true if a walk reports a race.
fn has_race(report: &walk::GridReport) -> bool {
    let race = FindingKind::is_race;
    report.findings.iter().any(|found| race(found.kind))
}

/// Returns true if a walk reports an uninitialized value.
///
/// Later results are undefined: the walk continues with 0, the model tries 0 and 1.
fn has_uninitialized_read(report: &walk::GridReport) -> bool {
    report.findings.iter().any(|found| found.kind == FindingKind::UninitialisedRead)
}

/// Regressions on which walk and model differed:
///
/// - a comparison that stores only in one schedule
/// - a read of a value published in other storage classes, through an earlier atomic on the same location
/// - a fence that makes writes visible that a control barrier without visibility ordered
/// - barriers in a loop after an atomic of one invocation
const REGRESSIONS: [u64; 5] = [901, 1759, 5850, 11_874, 25_919];

/// Returns a random kernel of phases between workgroup barriers, and true if two accesses of a phase conflict.
///
/// A fence if `is_fine`: other orders than those of the barriers are possible then.
fn random_phases(random: &mut Random, is_fine: bool) -> (String, bool) {
    let mut text = HEADER.replace("CAPABILITY", "").replace("MODEL", "GLSL450");
    text = text.replace("LOCAL", "4").replace("COHERENT", "");
    text += "%main = OpFunction %void None %function\n%entry = OpLabel\n%me = OpLoad %u32 %id\n\
             %at0 = OpAccessChain %to_shared %shared %0\n%at1 = OpAccessChain %to_shared %shared %1\n";
    text += if is_fine { "OpMemoryBarrier %2 %264\n" } else { "" };
    let mut is_racy = false;
    let mut accesses: Vec<(usize, usize, bool)> = Vec::new();
    for number in 0..12 {
        // Most phases have one access, so that most of the history is ordered.
        if random.below(4) > 0 {
            text += "OpControlBarrier %2 %2 %264\n";
            accesses.clear();
        }
        let (lane, place, writes) = (random.below(4), random.below(2), random.below(3) > 0);
        is_racy |=
            accesses.iter().any(|(other, at, stores)| *other != lane && *at == place && (writes || *stores));
        accesses.push((lane, place, writes));
        let access = match writes {
            true => format!("OpStore %at{place} %1"),
            false => format!("%l{number} = OpLoad %u32 %at{place}"),
        };
        text += &format!(
            "%c{number} = OpIEqual %bool %me %{lane}\nOpSelectionMerge %m{number} None\n\
             OpBranchConditional %c{number} %t{number} %m{number}\n%t{number} = OpLabel\n{access}\n\
             OpBranch %m{number}\n%m{number} = OpLabel\n"
        );
    }
    (text + "OpReturn\nOpFunctionEnd\n", is_racy)
}

/// Regression: of three writes of a word in three phases, the last one was not recorded.
#[test]
fn races_within_a_phase_are_found_after_many_phases() {
    let options = AnalysisOptions { grid: Some([1, 1, 1]), ..AnalysisOptions::default() };
    for seed in 1..=100 {
        for is_fine in [false, true] {
            let (text, is_racy) = random_phases(&mut Random::new(seed), is_fine);
            let module = entry_point::read_module(text.as_bytes()).unwrap();
            let walked = walk::analyze_grid(&module, &options).unwrap();
            assert_eq!(has_race(&walked), is_racy, "seed {seed}: {:?}\n{text}", walked.findings);
        }
    }
}

#[test]
fn walks_agree_with_the_model() {
    compare_with_model(Synchronization::Barriers, &REGRESSIONS);
}

#[test]
fn walks_agree_with_the_model_on_split_barriers() {
    compare_with_model(Synchronization::SplitBarriers, &[]);
}

#[test]
fn walks_agree_with_the_model_on_interlocked_sections() {
    // A plain read after an atomic of the same invocation need not see an earlier write of another one.
    compare_with_model(Synchronization::InterlockedSections, &[988]);
}

/// A subgroup barrier that some invocations skip orders the others.
#[test]
fn walks_agree_with_the_model_on_subgroup_barriers() {
    compare_with_model(Synchronization::Subgroups, &[]);
}

/// Bound on the shadow memory per accessed byte, also with locks and in sparsely accessed buffers.
#[test]
fn shadow_memory_has_at_most_32_bytes_per_byte() {
    let shaders = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shaders");
    let read = |path: std::path::PathBuf| entry_point::read_module(&std::fs::read(path).unwrap()).unwrap();
    let lock = AnalysisOptions { grid: Some([256, 1, 1]), ..AnalysisOptions::default() };
    let mut all = vec![("lock-right", read(shaders.join("lock-right.spvasm")), lock)];
    if let Some(corpora) = std::env::var_os("VK_LITMUS_CORPORA") {
        let folder = std::path::PathBuf::from(corpora).join("kernels/granite_binning");
        let case = std::fs::read_to_string(folder.join("case.toml")).unwrap();
        let case = entry_point::inputs::parse_case_file(&case, &|name| Err(name.to_owned())).unwrap();
        all.push(("granite_binning", read(folder.join("k.spv")), case.options));
    }
    for (name, module, options) in all {
        let walked = walk::analyze_grid(&module, &AnalysisOptions { schedules: Some(1), ..options }).unwrap();
        let (kept, accessed) = (walked.shadow_bytes, walked.accessed_bytes);
        assert!(accessed > 0 && kept <= 32 * accessed, "{name}: {kept} of {accessed}");
    }
}

/// A kernel that races only in the model, and the reason why no walk finds the race.
struct ModelOnlyRace {
    seed: u64,
    meeting: Synchronization,
    /// A replacement in the text that removes the cause and the race.
    replacement: [&'static str; 2],
}

/// Kernels that race only if a read returns the value of a later write.
///
/// In five of them the read decides whether the write is executed, in a cycle of invocations: `if (x) y = 1`
/// and `if (y) x = 1`. The specification does not exclude that (VK-AC-06), but no known implementation does
/// it; if the kernels store zeros, they do not race. In the last three, a control barrier without matching
/// semantics lies between the read and another invocation's write. It does not order them (VK-SW-09,
/// VK-SW-10), so a device may execute the read late. In 17531 the barrier orders the accesses that depend on
/// the read, so only value speculation leads to the race. A walk reads only earlier writes.
const MODEL_ONLY_RACES: [ModelOnlyRace; 8] = [
    ModelOnlyRace {
        seed: 3235,
        meeting: Synchronization::Barriers,
        replacement: ["OpAtomicOr %u32 %dother %5 %24648 %1", "OpAtomicOr %u32 %dother %5 %24648 %0"],
    },
    ModelOnlyRace {
        seed: 12_259,
        meeting: Synchronization::Barriers,
        replacement: ["OpStore %p105 %1 ", "OpStore %p105 %0 "],
    },
    ModelOnlyRace {
        seed: 31_312,
        meeting: Synchronization::Barriers,
        replacement: [
            "%a108 = OpAtomicCompareExchange %u32 %dme %5 %0 %0 %1 %0",
            "%a108 = OpAtomicCompareExchange %u32 %dme %5 %0 %0 %0 %0",
        ],
    },
    ModelOnlyRace {
        seed: 32_611,
        meeting: Synchronization::Barriers,
        replacement: [
            "OpStore %dme %1 NonPrivatePointer|MakePointerAvailable %2",
            "OpStore %dme %0 NonPrivatePointer|MakePointerAvailable %2",
        ],
    },
    ModelOnlyRace {
        seed: 947,
        meeting: Synchronization::InterlockedSections,
        replacement: ["OpStore %p102 %1 ", "OpStore %p102 %0 "],
    },
    ModelOnlyRace {
        seed: 37_502,
        meeting: Synchronization::Barriers,
        replacement: ["OpControlBarrier %2 %2 %0", "OpControlBarrier %2 %2 %72"],
    },
    ModelOnlyRace {
        seed: 17_531,
        meeting: Synchronization::Barriers,
        replacement: ["OpControlBarrier %2 %2 %24840", "OpControlBarrier %2 %2 %24904"],
    },
    ModelOnlyRace {
        seed: 18_237,
        meeting: Synchronization::Barriers,
        replacement: ["OpControlBarrier %2 %2 %24840", "OpControlBarrier %2 %2 %24904"],
    },
];

#[test]
fn model_only_races_need_a_read_of_a_later_write() {
    let model = Model::shipped("vulkan").unwrap().unwrap();
    let query = ModelQuery {
        budget: Budget::default().with_step_limit(30_000),
        decide_race: true,
        decide_question: false,
        locate_race: false,
    };
    for beyond in &MODEL_ONLY_RACES {
        let (text, options) = random_kernel(beyond.seed, beyond.meeting);
        // Two invocations have the same race as four, and the model is faster.
        let text = text.replace("LocalSize 4 ", "LocalSize 2 ");
        let [from, to] = beyond.replacement;
        assert_eq!(text.matches(from).count(), 1, "seed {}", beyond.seed);
        for (text, expected) in [(text.clone(), Race::Racy), (text.replace(from, to), Race::Free)] {
            let module = entry_point::read_module(text.as_bytes()).unwrap();
            let answer =
                symbolic::answer_with_model(&symbolic::lift(&module, &options).unwrap(), &model, &query)
                    .unwrap();
            assert_eq!(answer.race, expected, "seed {}\n{text}", beyond.seed);
            let walked =
                walk::analyze_grid(&module, &AnalysisOptions { schedules: Some(100), ..options.clone() })
                    .unwrap();
            assert!(!has_race(&walked) && walked.is_schedule_dependent, "seed {}", beyond.seed);
        }
    }
}

#[expect(clippy::unwrap_used, clippy::panic, reason = "what tests share")]
fn compare_with_model(meeting: Synchronization, once: &[u64]) {
    let model = Model::shipped("vulkan").unwrap().unwrap();
    // A count or a range.
    let requested = std::env::var("VK_LITMUS_RANDOM_KERNELS").unwrap_or_else(|_| "30".to_owned());
    let (first, last) = requested.split_once('-').unwrap_or(("1", &requested));
    let (first, last): (u64, u64) = (first.parse().unwrap(), last.parse().unwrap());
    let mut count = last + 1 - first;
    let (mut racy, mut free, mut open, mut missed, mut uninitialized_only) = (0, 0, 0, 0, 0);
    let schedules = [1, 10, 100];
    let (mut found_by, mut never) = ([0; 3], Vec::new());
    count += once.len() as u64;
    for seed in (first..=last).chain(once.iter().copied()) {
        let (text, options) = random_kernel(seed, meeting);
        let body = text.split_once("%groups = OpLoad").map_or("", |(_, body)| body);
        let module =
            entry_point::read_module(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let walked = walk::analyze_grid(&module, &options)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        let lifted = match symbolic::lift(&module, &options) {
            Ok(lifted) => lifted,
            // Too many executions of one invocation.
            Err(Refusal { what: Problem::Budget { .. } | Problem::Exhausted { .. }, .. }) => {
                open += 1;
                continue;
            }
            // The lifter refuses subgroup barriers that depend on a loaded value, so only the walk has an
            // answer.
            Err(Refusal { what: Problem::Unsupported(_), .. }) if meeting == Synchronization::Subgroups => {
                count -= 1;
                continue;
            }
            Err(error) => panic!("seed {seed}: {error}\n{text}"),
        };
        let budget = Budget::default().with_step_limit(30_000);
        let query = ModelQuery { budget, decide_race: true, decide_question: false, locate_race: false };
        // Some tests exceed the engine's bounds.
        let Ok(answer) = symbolic::answer_with_model(&lifted, &model, &query) else {
            open += 1;
            continue;
        };
        let found = has_race(&walked);
        match answer.race {
            Race::Racy => {
                racy += 1;
                // Schedule-dependent races may be missed.
                let is_reported = found || has_uninitialized_read(&walked);
                uninitialized_only += usize::from(is_reported && !found);
                missed += usize::from(!is_reported);
                assert!(
                    is_reported || walked.is_schedule_dependent,
                    "seed {seed}: missed\n{options:?}\n{body}"
                );
                // Every schedule count includes the smaller ones.
                let mut seen = false;
                for (found_count, schedules) in found_by.iter_mut().zip(schedules) {
                    let limited_options = AnalysisOptions { schedules: Some(schedules), ..options.clone() };
                    let reports_defect =
                        |report: walk::GridReport| has_race(&report) || has_uninitialized_read(&report);
                    seen = seen || walk::analyze_grid(&module, &limited_options).is_ok_and(reports_defect);
                    *found_count += usize::from(seen);
                }
                if !seen {
                    never.push(seed);
                    println!("seed {seed}: the model alone finds it\n{options:?}\n{text}");
                }
            }
            Race::Free => {
                free += 1;
                let words: Vec<&String> = walked.findings.iter().map(|found| &found.message).collect();
                assert!(!found, "seed {seed}: {words:#?}\n{options:?}\n{body}");
                assert_ne!(walked.verdict, RaceVerdict::Undecided);
            }
            Race::Unknown => open += 1,
        }
    }
    let counts = schedules.iter().zip(found_by).map(|(n, found)| format!("{found} by {n}"));
    let shares = counts.collect::<Vec<_>>().join(", ");
    println!(
        "{racy} racy ({uninitialized_only} reported as an uninitialized read only), {free} free, {open} open; of the racy {missed} missed, found \
         {shares}; never: {never:?}"
    );
    assert!(racy > count as usize / 10 && free > count as usize / 20, "{racy} {free}");
    assert!(open * 10 <= count as usize, "{open} of {count} open");
    assert!(missed * 50 <= racy, "{missed} of {racy} missed");
}
