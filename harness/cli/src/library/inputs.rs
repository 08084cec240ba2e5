//! The inputs of a shader: its dispatch, its constants, and the initial contents of its memory.

use analysis::InputMode;
use campaign::Failure;
use entry_point::{AnalysisOptions, inputs};

use super::error::Error;

/// The inputs of a shader: its dispatch, its constants, and the initial contents of its memory.
///
/// The checker chooses missing inputs such that code is reached and invocations interact; an answer that
/// depends on such a choice is `needs-inputs` and lists it. [`ShaderInputs::zeros`] turns the choice off.
///
/// ```
/// use vk_litmus::{CompileOptions, RaceDetector, ShaderInputs, ShaderModule};
///
/// let inputs = ShaderInputs::new()
///     .entry("main")
///     .grid([4, 1, 1])
///     .subgroup_size(32)
///     .specialization(0, 64)
///     .push_constants(0, &16_u32.to_le_bytes())
///     .buffer(0, 1, vec![0; 256])
///     .named_buffer("particles", vec![0; 1024])
///     .keep_contents()
///     .assume("pc.stride >= pc.width")
///     .assertion("counter[0] == 4")?;
/// assert!(inputs.assertion("data[0] ==").is_err());
///
/// let shader = ShaderModule::load("../../ci/action/race.spvasm", &CompileOptions::new()).remove(0)?;
/// let grid_for = |inputs: ShaderInputs| -> Result<[u32; 3], vk_litmus::Error> {
///     let answers = RaceDetector::new()?.find_races(&shader, &inputs.entry("main"));
///     assert_eq!((answers.len(), answers[0].line.entry.as_str()), (1, "main"));
///     Ok(answers[0].line.grid)
/// };
/// assert_eq!(grid_for(ShaderInputs::new().grid([3, 1, 1]))?, [3, 1, 1]);
/// assert_eq!(grid_for(ShaderInputs::new().zeros())?, [1, 1, 1]);
/// # Ok::<(), vk_litmus::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ShaderInputs {
    pub(super) options: AnalysisOptions,
    pub(super) mode: InputMode,
}

impl Default for ShaderInputs {
    fn default() -> ShaderInputs {
        ShaderInputs::new()
    }
}

impl ShaderInputs {
    /// Creates inputs without values; the checker chooses them.
    pub fn new() -> ShaderInputs {
        ShaderInputs { options: AnalysisOptions::default(), mode: InputMode::Auto }
    }

    /// Parses a case file, as `race --save-case` writes it; `read_file` returns the contents of a file that it
    /// names.
    ///
    /// # Errors
    /// If a key is unknown or malformed, or `read_file` fails.
    ///
    /// ```
    /// use vk_litmus::ShaderInputs;
    ///
    /// let no_file = |name: &str| Err(format!("unexpected file {name}"));
    /// assert!(ShaderInputs::from_case("grid = [2, 1, 1]", &no_file).is_ok());
    /// assert!(ShaderInputs::from_case("grids = 2", &no_file).is_err());
    /// ```
    pub fn from_case(
        text: &str,
        read_file: &dyn Fn(&str) -> Result<Vec<u8>, String>,
    ) -> Result<ShaderInputs, Error> {
        let case = inputs::parse_case_file(text, read_file);
        let case =
            case.map_err(|error| Error::for_file("case", Failure::input_message(error.to_string())))?;
        // A case file may give more than a shader uses.
        let options = inputs::merge_options(AnalysisOptions::default(), case.options);
        Ok(ShaderInputs { options, mode: InputMode::Auto })
    }

    /// Analyses one entry point [default: every one].
    #[must_use]
    pub fn entry(mut self, name: &str) -> ShaderInputs {
        self.options.entry = Some(name.to_owned());
        self
    }

    /// Sets the number of workgroups in x, y and z; the local size is that of the module.
    #[must_use]
    pub fn grid(mut self, workgroups: [u32; 3]) -> ShaderInputs {
        self.options.grid = Some(workgroups);
        self
    }

    /// Sets the number of invocations in a subgroup [default: the workgroup].
    #[must_use]
    pub fn subgroup_size(mut self, invocations: u32) -> ShaderInputs {
        self.options.subgroup_size = Some(invocations);
        self
    }

    /// Sets a specialization constant by its `SpecId`: an integer, a boolean as 0 or 1, or the bits of a float.
    #[must_use]
    pub fn specialization(mut self, id: u32, value: u64) -> ShaderInputs {
        self.options.specialization.insert(id, value);
        self
    }

    /// Sets push constants from an offset in bytes.
    #[must_use]
    pub fn push_constants(mut self, offset: u64, bytes: &[u8]) -> ShaderInputs {
        self.options.push.extend((offset..).zip(bytes.iter().copied()));
        self
    }

    /// Sets the initial contents of a buffer by set and binding; they are also its size.
    #[must_use]
    pub fn buffer(mut self, set: u32, binding: u32, bytes: Vec<u8>) -> ShaderInputs {
        self.options.buffers.insert((set, binding), bytes.into());
        self
    }

    /// Sets the initial contents of a buffer by the name of its block or variable.
    #[must_use]
    pub fn named_buffer(mut self, name: &str, bytes: Vec<u8>) -> ShaderInputs {
        self.options.named_buffers.insert(name.to_owned(), bytes.into());
        self
    }

    /// Adds the final contents of buffers to the answer: `line.contents`.
    #[must_use]
    pub fn keep_contents(mut self) -> ShaderInputs {
        self.options.keep_final = true;
        self.options.needs_whole_push = true;
        self
    }

    /// Assumes a condition on the inputs, which a proof for every input needs.
    #[must_use]
    pub fn assume(mut self, condition: &str) -> ShaderInputs {
        self.options.conditions.push(condition.to_owned());
        self
    }

    /// Asserts something about every final state, such as `data[0] == 3 and flag == 1`.
    ///
    /// # Errors
    /// If the text is not an assertion.
    pub fn assertion(mut self, text: &str) -> Result<ShaderInputs, Error> {
        let formula = spirv_reader::annotations::parse_formula(text);
        let formula =
            formula.map_err(|error| Error::for_file(text, Failure::input_message(error.to_string())))?;
        self.options.assertion = Some(formula);
        Ok(self)
    }

    /// Uses zeros and one workgroup for missing inputs.
    #[must_use]
    pub fn zeros(mut self) -> ShaderInputs {
        self.mode = InputMode::Zeros;
        self
    }
}
