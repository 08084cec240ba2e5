//! The report of a walk: findings, what it covers, and the inputs that decide it.

use std::collections::BTreeSet;

use entry_point::launch::wider_grid;
use entry_point::{FindingCause, FindingKind, InvocationId, Refusal, Spot};
use results::wire::RaceVerdict;
use spirv_reader::{CodePlace, SourcePosition, SpirvModule, SpirvOperation, Stage};

/// Upper bound on the ranges of unreached lines that the report lists.
const MAX_RANGES: usize = 8;

/// A source location of a finding, with the invocation that executes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridSpot {
    /// Index of the source line; 0 if unknown.
    pub line: u32,
    /// The position in the module.
    pub place: SourcePosition,
    /// The invocation at this position.
    pub invocation: InvocationId,
    /// For an access, true if it writes.
    pub writes: Option<bool>,
}

/// A defect found by the walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridFinding {
    /// The class of the defect.
    pub kind: FindingKind,
    pub cause: FindingCause,
    /// The accessed element; empty if none is known.
    pub element: String,
    /// The description, as one sentence.
    pub message: String,
    /// The positions involved.
    pub at: Vec<GridSpot>,
    /// The assumed inputs that its values or addresses depend on, by index.
    pub inputs: Vec<usize>,
    /// The assumed inputs that decided a branch before it, if the kind may be due to that.
    pub control: Vec<usize>,
    /// The numbers of its instructions, and of the labels of their blocks.
    pub sites: Vec<u32>,
    pub blocks: Vec<u32>,
    /// True if one of its accesses reads, or if inputs decide the place of only one.
    pub has_read: bool,
    /// True for a race in workgroup memory of an atomic at a place that inputs decide and a plain access at another one.
    pub is_keyed: bool,
}

/// Returns the variable of an element, such as `B` of `B.d[0]`.
pub fn variable_of_element(element: &str) -> &str {
    element.split(['[', '.']).next().unwrap_or_default()
}

impl GridFinding {
    /// Returns a finding that depends on no assumed input.
    pub fn new(cause: FindingCause, message: String, at: Vec<GridSpot>) -> GridFinding {
        let (inputs, control, sites, blocks) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (kind, element) = (cause.kind(), String::new());
        let (has_read, is_keyed) = (false, false);
        GridFinding { kind, cause, element, message, at, inputs, control, sites, blocks, has_read, is_keyed }
    }

    /// Returns the finding as one that depends on no assumed input.
    pub fn without_inputs(&self) -> GridFinding {
        GridFinding::new(self.cause, self.message.clone(), self.at.clone())
    }

    /// Returns the two invocations of a race.
    pub fn racing_pair(&self) -> Option<[InvocationId; 2]> {
        match &self.at[..] {
            [one, other] if self.kind.is_race() && one.invocation != other.invocation => {
                Some([one.invocation, other.invocation])
            }
            _ => None,
        }
    }

    /// Returns a finding of the model, without an element.
    pub fn from_spots(
        invocations: &[InvocationId],
        cause: FindingCause,
        message: String,
        at: &[Spot],
    ) -> GridFinding {
        let spot = |spot: &Spot| GridSpot {
            line: spot.line,
            place: spot.place,
            invocation: invocations.get(usize::from(spot.thread)).copied().unwrap_or_default(),
            writes: spot.writes,
        };
        GridFinding::new(cause, message, at.iter().map(spot).collect())
    }

    /// Returns true if an instruction of the finding is atomic.
    pub fn has_atomic_access(&self, module: &SpirvModule) -> bool {
        let mut code = module.functions.values().flat_map(|function| &function.code);
        code.any(|instruction| {
            matches!(module.operation(instruction), SpirvOperation::Atomic(_))
                && self.at.iter().any(|spot| spot.place == instruction.place)
        })
    }

    /// Returns the finding as one of a wider grid than the assumed one.
    pub fn with_wider_grid(&self, grid: String) -> WiderGridFinding {
        WiderGridFinding { grid, finding: self.clone() }
    }

    /// Returns the kind and the instructions, which are equal in other walks.
    pub fn finding_key(&self) -> FindingKey {
        (kind_group(self.kind), self.sites.clone())
    }
}

/// An input that no option supplies and that the answer depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeededInput {
    /// The source name.
    pub name: String,
    /// The assumed value.
    pub value: String,
    /// The option that supplies it.
    pub option: String,
    /// The source lines that were not reached because of it, as ranges; empty if it decides a finding.
    pub lines: String,
    /// The first of them.
    pub place: Option<CodePlace>,
    /// The finding that depends on it.
    pub finding: Option<Box<GridFinding>>,
    /// True for the contents of a storage buffer.
    pub is_contents: bool,
}

impl NeededInput {
    /// Returns the grid of a shader that is clean in one workgroup, vertex or pixel alone.
    pub fn missing_grid(stage: Stage) -> NeededInput {
        let value = match stage {
            Stage::Compute | Stage::Task | Stage::Mesh => "one workgroup",
            Stage::Vertex => "one vertex",
            Stage::Fragment => "one fragment",
        };
        NeededInput::for_finding("grid".to_owned(), value.to_owned(), wider_grid(stage).option.to_owned())
    }

    /// Returns a grid that decides a finding.
    pub fn grid_for_finding(value: String) -> NeededInput {
        let option = format!("--grid {value}");
        NeededInput::for_finding("grid".to_owned(), value, option)
    }

    /// Returns a subgroup size that decides a finding.
    pub fn subgroup_size_for_finding(value: String) -> NeededInput {
        let option = format!("--subgroup-size {value}");
        NeededInput::for_finding("subgroup size".to_owned(), value, option)
    }

    /// Returns true if a subgroup size decides a finding.
    pub fn is_subgroup_size_for_finding(&self) -> bool {
        self.finding.is_some() && self.name == NeededInput::subgroup_size_for_finding(String::new()).name
    }

    /// Returns an input that decides a finding.
    pub fn for_finding(name: String, value: String, option: String) -> NeededInput {
        NeededInput {
            name,
            value,
            option,
            lines: String::new(),
            place: None,
            finding: None,
            is_contents: false,
        }
    }

    /// Returns the input with the finding that depends on it.
    pub fn with_finding(self, finding: &GridFinding) -> NeededInput {
        NeededInput { finding: Some(Box::new(finding.clone())), ..self }
    }
}

/// The content of a buffer after all invocations have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalBuffer {
    /// Descriptor set, binding, and element of an array of buffers.
    pub at: (u32, u32, u32),
    /// The content.
    pub bytes: Vec<u8>,
    /// Offset of the first byte that is schedule-dependent or not computed by the walk.
    pub first_open_byte: Option<usize>,
    /// Offset of the first byte that the walk does not compute.
    pub first_unknown_byte: Option<usize>,
    /// Offset of the first byte of an undefined value.
    pub first_undefined_byte: Option<usize>,
}

/// The result of analyzing one kernel.
#[derive(Clone, Debug, Default)]
pub struct GridReport {
    /// The name of the entry point.
    pub entry: String,
    /// The shader stage.
    pub stage: Stage,
    /// Workgroups; for graphics stages vertices and instances, or pixels and fragments per pixel.
    pub grid: [u32; 3],
    /// Invocations per workgroup, by axis.
    pub local_size: [u32; 3],
    /// Invocations per subgroup.
    pub subgroup_size: u32,
    /// The workgroups that ran, by their position in the grid; empty if all did.
    pub workgroups: Vec<[u32; 3]>,
    /// The outcome.
    pub verdict: RaceVerdict,
    /// The limit or unsupported feature that ended the walk, if any.
    pub refusal: Option<Refusal>,
    /// The defects found.
    pub findings: Vec<GridFinding>,
    /// True if the schedule decides control flow or addresses, so that a pass covers only the tried
    /// schedules.
    pub is_schedule_dependent: bool,
    /// The axiomatic model, if it decided every execution where the walk was incomplete.
    pub model: Option<DecidingModel>,
    /// True if interlocked sections run in any order.
    pub has_unordered_interlock: bool,
    /// True if lanes of a subgroup executed a subgroup operation without others. Other reconvergences are possible.
    pub has_partial_subgroups: bool,
    /// Number of schedules tried.
    pub schedules: u64,
    /// Number of the first schedule with a finding.
    pub finding_schedule: Option<u64>,
    /// Steps executed by all invocations.
    pub steps: u64,
    /// Bytes of memory with a recorded access, in the schedule with the largest shadow memory.
    pub accessed_bytes: u64,
    /// Bytes of shadow memory in that schedule; see [`accessed_bytes`](GridReport::accessed_bytes).
    pub shadow_bytes: u64,
    /// Final buffer contents of the first schedule, if requested and if it ran to its end.
    pub final_buffers: Vec<FinalBuffer>,
    /// The first defect with two workgroups, if no grid was given and one workgroup is clean.
    pub two_workgroup_finding: Option<WiderGridFinding>,
    /// The findings that chosen inputs, the assumed grid or the assumed subgroup size decide.
    pub open_findings: Vec<GridFinding>,
    /// The inputs that were chosen: all of the first choice, then what differs in each further one.
    pub chosen_inputs: Vec<Vec<String>>,
    /// The limits of the answer.
    pub limits: Vec<CoverageLimit>,
    /// The buffers and images whose assumed size accesses exceed. Such accesses are not checked.
    pub exceeded: Vec<ExceededSize>,
    /// The inputs to supply, if the verdict is [`RaceVerdict::NeedsInputs`].
    pub needs: Vec<NeededInput>,
    /// True if the verdict is that for the one reason that a race needs a small number with large ones.
    pub is_open_by_share: bool,
    /// The first element whose final contents depend on the schedule although nothing races.
    pub order_dependent_element: Option<String>,
    /// The lines that no invocation reached.
    pub unreached: BTreeSet<CodePlace>,
    /// The lines that assumed inputs keep from being reached.
    pub blocked: Vec<Blocked>,
    /// The blocks that were reached.
    pub reached: Vec<bool>,
}

impl GridReport {
    /// Returns the number of source lines that no invocation reached.
    pub fn count_unreached_lines(&self) -> usize {
        self.unreached.len()
    }

    /// Returns the lines that no invocation reached as a limit.
    pub fn unreached_limit(&self, module: &SpirvModule) -> Option<CoverageLimit> {
        line_ranges(module, &self.unreached).map(CoverageLimit::Unreached)
    }

    /// Returns an empty report for a kernel whose invocations were not walked.
    pub fn unwalked(entry: String, invocations: &[InvocationId], subgroup_size: u32) -> GridReport {
        let grid_size = |of: fn(&InvocationId) -> [u32; 3]| {
            let all = invocations.iter().map(of);
            all.fold([1; 3], |all, one| [0, 1, 2].map(|axis: usize| all[axis].max(one[axis] + 1)))
        };
        let local_size = grid_size(|identity| identity.local);
        let stage = invocations.first().map(|identity| identity.stage).unwrap_or_default();
        let grid = grid_size(|identity| identity.workgroup);
        let verdict = RaceVerdict::Undecided;
        GridReport { verdict, ..GridReport::new(entry, stage, grid, local_size, subgroup_size) }
    }

    /// Returns a clean report of no schedule, for workgroups and their size.
    pub fn new(
        entry: String,
        stage: Stage,
        grid: [u32; 3],
        local_size: [u32; 3],
        subgroup_size: u32,
    ) -> GridReport {
        GridReport { entry, stage, grid, local_size, subgroup_size, ..GridReport::default() }
    }
}

/// A limit of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoverageLimit {
    /// An assumption or restriction of the walk.
    Note(String),
    /// Source lines that no invocation reached, as ranges.
    Unreached(String),
    /// A finding with another grid than the assumed one.
    WiderGrid(WiderGridFinding),
    /// Every workgroup does the same, and the grid is not given.
    OneWorkgroup,
    /// The search for grids in which positions coincide was cut off.
    GridSearchCutOff,
}

/// A finding with another grid than the assumed one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WiderGridFinding {
    /// The grid, as an option or in words.
    pub grid: String,
    pub finding: GridFinding,
}

/// A buffer or image whose assumed size accesses exceed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExceededSize {
    pub name: String,
    /// Set and binding; `None` for the target of an address.
    pub at: Option<(u32, u32)>,
    /// A size that holds all accesses.
    pub required: RequiredSize,
    /// The first access beyond the size.
    pub finding: GridFinding,
}

/// The size of a buffer or image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequiredSize {
    Bytes(u64),
    /// Texels along each axis.
    Texels([u32; 3]),
}

/// The model that decided every execution where the walk was incomplete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecidingModel {
    pub name: String,
    /// Number of invocations in the litmus test.
    pub invocations: usize,
    /// Number of executions that the model allows; 0 if they were not counted.
    pub executions: u64,
}

/// A finding by kind and instructions, for comparing walks.
pub type FindingKey = (FindingKind, Vec<u32>);

/// Lines that no invocation reaches for the assumed value of inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The indices of the inputs.
    pub inputs: Vec<usize>,
    pub lines: BTreeSet<CodePlace>,
    /// The blocks, by the number of their label instruction.
    pub blocks: BTreeSet<u32>,
    /// Those of them that a branch on the inputs leads to.
    pub targets: BTreeSet<u32>,
}

impl Blocked {
    /// Returns true if an instruction of a finding is in one of the blocks.
    pub fn contains(&self, found: &GridFinding) -> bool {
        found.blocks.iter().any(|block| self.blocks.contains(block))
    }

    /// Returns true if other choices of inputs take the branch. What they leave unreached behind it is blocked by
    /// other branches.
    pub fn is_covered(&self, covered: &[bool]) -> bool {
        self.targets.iter().all(|block| covered.get(*block as usize).copied().unwrap_or_default())
    }
}

/// Returns the kind under which findings of different schedules are equal.
pub(crate) fn kind_group(kind: FindingKind) -> FindingKind {
    if kind.is_race() { FindingKind::Race } else { kind }
}

/// Describes places as ranges: source lines of one file, then positions in the module, such as `lines 3-5, 9`.
pub fn line_ranges(module: &SpirvModule, places: &BTreeSet<CodePlace>) -> Option<String> {
    let source = |place: &CodePlace| match place {
        CodePlace::Source(line) => module.source_line(*line).map(|at| (at.file.as_str(), at.line)),
        CodePlace::Module(_) => None,
    };
    let mut all: Vec<(&str, u32)> = places.iter().filter_map(source).collect();
    all.sort_unstable();
    let of_file = all.iter().filter(|(file, _)| *file == all[0].0);
    let lines: Vec<(u32, u32)> = of_file.map(|(_, line)| (*line, *line + 1)).collect();
    let (mut text_lines, mut words) = (Vec::new(), Vec::new());
    for place in places {
        match place {
            CodePlace::Module(SourcePosition::Line(line)) => text_lines.push((*line, *line + 1)),
            CodePlace::Module(SourcePosition::Word(word)) => {
                words.push((*word, *word + module.word_count(*word)));
            }
            CodePlace::Source(_) | CodePlace::Module(SourcePosition::Module) => {}
        }
    }
    let described = [("line", lines), ("line", text_lines), ("word", words)];
    let described = described.iter().filter_map(|(unit, all)| describe_ranges(unit, all));
    // A module in text may have lines of its source, too.
    let described: Vec<String> = described.collect();
    (!described.is_empty()).then(|| described.join(" and in the module "))
}

/// Describes intervals, each with its end, as ranges of a unit.
fn describe_ranges(unit: &str, all: &[(u32, u32)]) -> Option<String> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for (first, end) in all {
        match ranges.last_mut() {
            Some((_, last)) if *first <= *last => *last = *end,
            _ => ranges.push((*first, *end)),
        }
    }
    let more = if ranges.len() > MAX_RANGES { ", …" } else { "" };
    let plural = if let [(first, end)] = all
        && first + 1 == *end
    {
        ""
    } else {
        "s"
    };
    let ranges = ranges.iter().take(MAX_RANGES).map(|(first, end)| match first + 1 == *end {
        true => first.to_string(),
        false => format!("{first}-{}", end - 1),
    });
    let ranges = ranges.collect::<Vec<_>>().join(", ");
    (!all.is_empty()).then(|| format!("{unit}{plural} {ranges}{more}"))
}
