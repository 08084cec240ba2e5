//! Tests of shaders on arrays: contents in, contents out, and a finding fails the test.
//!
//! The walk executes every invocation, detects races by happens-before, and yields the contents of the first
//! schedule. No device is used. Contents that depend on the schedule are named in [`ShaderTestRun`].

use std::fmt;
use std::time::Duration;

use answers::{EntryOptions, entry_options, placed_refusal_text, race_line};
use bytemuck::{NoUninit, Pod, bytes_of, cast_slice, cast_slice_mut};
use campaign::shader::source::{Compilation, load_text};
use campaign::time_limit::stop_after;
use frontend::grid::{GridReport, GridVerdict};
use frontend::{AnalysisOptions, DeadlinePredicate, Refusal};
use model::Budget;
use results::wire::RaceLine;
use results::write::race::format_race;

use super::error::Error;
use super::model::AxiomaticModel;
use super::shader::{ShaderModule, source_error};

/// Default limit of a run; see [`ShaderTest::time_limit`].
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// A dispatch of a shader on arrays, which fails if the shader has a race or other undefined behaviour.
///
/// ```no_run
/// use vk_litmus::ShaderTest;
///
/// let square = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
/// @compute @workgroup_size(1)
/// fn main(@builtin(workgroup_id) id: vec3u) { data[id.x] *= data[id.x]; }";
/// let mut data = [1_u32, 2, 3, 4];
/// ShaderTest::source("square.wgsl", square).grid([4, 1, 1]).bind(0, 0, &mut data).run()?;
/// assert_eq!(data, [1, 4, 9, 16]);
///
/// let words = std::fs::read("scale.spv")?;
/// ShaderTest::spirv("scale", words)
///     .entry("main")
///     .grid([1, 1, 1])
///     .subgroup_size(32)
///     .specialization(0, 64)
///     .push(&[2_u32, 4])
///     .bind_read(0, 1, &[0.5_f32; 4])
///     .bind(0, 0, &mut data)
///     .schedules(100)
///     .seed(7)
///     .time_limit(std::time::Duration::from_secs(1))
///     .run()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ShaderTest<'a> {
    shader: Result<ShaderModule, Error>,
    text: Option<String>,
    options: AnalysisOptions,
    bindings: Vec<Binding<'a>>,
    time_limit: Duration,
}

/// A slice that is bound to a descriptor.
#[derive(Debug)]
struct Binding<'a> {
    at: (u32, u32),
    bytes: &'a mut [u8],
}

/// The result of a run besides the contents of the slices.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ShaderTestRun {
    /// Verdict and coverage, as `race --format json` prints them.
    pub line: RaceLine,
    /// The first element whose contents depend on the schedule although nothing races.
    pub order_dependent: Option<String>,
}

/// Why a test of a shader fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShaderTestError {
    /// The shader has a finding.
    #[error("{}", FindingText { line, text: text.as_deref(), seed: *seed })]
    Finding {
        /// The findings.
        line: Box<RaceLine>,
        /// The source, if it is known.
        text: Option<String>,
        /// The seed that repeats the schedules: [`ShaderTest::seed`].
        seed: u64,
    },
    /// The walk reached a limit or something that it does not support.
    #[error("{}", format_race(.0))]
    Undecided(Box<RaceLine>),
    /// The shader or an input is wrong.
    #[error(transparent)]
    Shader(#[from] Error),
    /// The shader or an input does not fit, with what was expected.
    #[error("{0}")]
    Input(String),
    /// Two slices are bound to one descriptor.
    #[error("set {0}, binding {1} is bound twice; expected one slice for each binding")]
    BoundTwice(u32, u32),
    /// The walk does not compute a byte of a bound buffer.
    #[error("set {set}, binding {binding}: byte {byte} is not computed: it is undefined or unspecified")]
    Unknown {
        /// The descriptor set.
        set: u32,
        /// The binding.
        binding: u32,
        /// The offset of the first such byte.
        byte: usize,
    },
}

impl<'a> ShaderTest<'a> {
    /// Creates a test of a source; the extension of `file` names its language, as in `scan.wgsl` or `scan.comp`.
    ///
    /// The source is compiled by an installed compiler.
    pub fn source(file: &str, text: &str) -> ShaderTest<'a> {
        let compilation = Compilation::default();
        let mut all = load_text(file, text, &compilation).into_iter();
        let shader = match (all.next(), all.next()) {
            (Some(Ok(source)), _) => {
                Ok(ShaderModule { file: file.to_owned(), source, compilation: Some(compilation) })
            }
            (Some(Err(error)), _) => Err(source_error(file, &error)),
            (None, _) => Ok(ShaderModule::from_spirv(file, [])),
        };
        ShaderTest::new(shader, Some(text.to_owned()))
    }

    /// Creates a test of SPIR-V, as words or text; `file` is its name in answers.
    pub fn spirv(file: &str, module: impl Into<Vec<u8>>) -> ShaderTest<'a> {
        ShaderTest::new(Ok(ShaderModule::from_spirv(file, module)), None)
    }

    fn new(shader: Result<ShaderModule, Error>, text: Option<String>) -> ShaderTest<'a> {
        // A test without a grid is one of one workgroup.
        let options = AnalysisOptions { grid: Some([1; 3]), ..AnalysisOptions::default() };
        ShaderTest { shader, text, options, bindings: Vec::new(), time_limit: TIME_LIMIT }
    }

    /// Sets the entry point; needed if there are several.
    #[must_use]
    pub fn entry(mut self, name: &str) -> ShaderTest<'a> {
        self.options.entry = Some(name.to_owned());
        self
    }

    /// Sets the number of workgroups [default: one].
    #[must_use]
    pub fn grid(mut self, workgroups: [u32; 3]) -> ShaderTest<'a> {
        self.options.grid = Some(workgroups);
        self
    }

    /// Sets the number of invocations of a subgroup [default: the workgroup].
    #[must_use]
    pub fn subgroup_size(mut self, invocations: u32) -> ShaderTest<'a> {
        self.options.subgroup_size = Some(invocations);
        self
    }

    /// Sets a specialization constant by its `SpecId`.
    #[must_use]
    pub fn specialization(mut self, id: u32, value: u64) -> ShaderTest<'a> {
        self.options.specialization.insert(id, value);
        self
    }

    /// Sets push constants from offset 0.
    #[must_use]
    pub fn push<T: NoUninit>(mut self, constants: &T) -> ShaderTest<'a> {
        self.options.push = (0..).zip(bytes_of(constants).iter().copied()).collect();
        self
    }

    /// Binds a slice to a buffer. After the run it has the contents that the shader left.
    #[must_use]
    pub fn bind<T: Pod>(mut self, set: u32, binding: u32, data: &'a mut [T]) -> ShaderTest<'a> {
        self.bindings.push(Binding { at: (set, binding), bytes: cast_slice_mut(data) });
        self
    }

    /// Binds a copy of a slice to a buffer whose final contents are not needed.
    #[must_use]
    pub fn bind_read<T: NoUninit>(mut self, set: u32, binding: u32, data: &[T]) -> ShaderTest<'a> {
        self.options.buffers.insert((set, binding), cast_slice(data).to_vec());
        self
    }

    /// Sets the number of schedules, which are all tried [default: a few, more for small grids].
    #[must_use]
    pub fn schedules(mut self, schedules: u64) -> ShaderTest<'a> {
        self.options.schedules = Some(schedules);
        self
    }

    /// Sets the seed of the schedules; the message of a failure names it.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> ShaderTest<'a> {
        self.options.seed = seed;
        self
    }

    /// Sets the limit of processor time [default: 10 s].
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> ShaderTest<'a> {
        self.time_limit = limit;
        self
    }

    /// Runs the dispatch, and writes the final contents to the bound slices.
    ///
    /// # Errors
    /// If the shader has a finding, the answer is undecided, or the shader or an input is wrong. The slices are
    /// unchanged then.
    pub fn run(self) -> Result<ShaderTestRun, ShaderTestError> {
        let ShaderTest { shader, text, mut options, bindings, time_limit } = self;
        let ShaderModule { file, source, .. } = shader?;
        for Binding { at, bytes } in &bindings {
            if options.buffers.insert(*at, bytes.to_vec()).is_some() {
                return Err(ShaderTestError::BoundTwice(at.0, at.1));
            }
        }
        options.language = source.language;
        options.by_language_rules = source.language.is_some();
        options.keep_final = true;
        options.deadline = Some(DeadlinePredicate::new(stop_after(time_limit)));
        let refused = |refusal: Refusal| ShaderTestError::Input(placed_refusal_text(&file, &refusal));
        let module = frontend::read_bound_module(&source.bytes, &options).map_err(refused)?;
        let EntryOptions { mut entries, .. } = entry_options(&module, &options).map_err(refused)?;
        let (Some(options), true) = (entries.pop(), entries.is_empty()) else {
            let names = module.entry_points().join(", ");
            return Err(ShaderTestError::Input(format!(
                "{file}: expected the name of an entry point: {names}"
            )));
        };
        let model = AxiomaticModel::named("vulkan")?.chosen.model;
        let stop = stop_after(time_limit);
        let report = frontend::judge(&module, &options, &model, Budget::until(&stop)).map_err(refused)?;
        let line = race_line(&file, &module, &options, report.clone());
        match report.verdict {
            GridVerdict::Racy => {
                let (line, seed) = (Box::new(line), options.seed);
                return Err(ShaderTestError::Finding { line, text, seed });
            }
            GridVerdict::Undecided | GridVerdict::NeedsInputs => {
                return Err(ShaderTestError::Undecided(Box::new(line)));
            }
            GridVerdict::Clean => {}
        }
        write_contents(&report, bindings)?;
        Ok(ShaderTestRun { line, order_dependent: report.order_dependent_element })
    }
}

/// Writes the final contents of each bound buffer to its slice.
fn write_contents(report: &GridReport, bindings: Vec<Binding<'_>>) -> Result<(), ShaderTestError> {
    let contents = |at: (u32, u32)| report.final_buffers.iter().find(|buffer| buffer.at == (at.0, at.1, 0));
    for Binding { at, .. } in &bindings {
        // Without contents of any buffer, the first schedule did not end.
        if report.final_buffers.is_empty() {
            return Err(ShaderTestError::Unknown { set: at.0, binding: at.1, byte: 0 });
        }
        if let Some(byte) = contents(*at).and_then(|buffer| buffer.first_unknown_byte) {
            return Err(ShaderTestError::Unknown { set: at.0, binding: at.1, byte });
        }
    }
    for Binding { at, bytes } in bindings {
        let Some(buffer) = contents(at) else { continue };
        let length = bytes.len().min(buffer.bytes.len());
        bytes[..length].copy_from_slice(&buffer.bytes[..length]);
    }
    Ok(())
}

/// The findings of a test, each place with its source line.
struct FindingText<'a> {
    line: &'a RaceLine,
    text: Option<&'a str>,
    seed: u64,
}

impl fmt::Display for FindingText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_race(self.line))?;
        let lines: Vec<&str> = self.text.unwrap_or_default().lines().collect();
        let places = self.line.findings.iter().flat_map(|finding| &finding.at);
        let mut numbers: Vec<u32> = places.filter_map(|place| place.line).collect();
        numbers.sort_unstable();
        numbers.dedup();
        for number in numbers {
            if let Some(text) = lines.get(number as usize - 1) {
                writeln!(f, "{number:5} | {text}")?;
            }
        }
        write!(f, "the same schedules again: `.seed({})`", self.seed)
    }
}
