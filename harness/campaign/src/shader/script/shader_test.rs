//! Tests of vkrunner (`.shader_test`): a compute shader, its buffers, and probes of their final contents.
//!
//! The commands are those of vkrunner's README and of `docs/vk_script.md` of Amber.

use entry_point::AnalysisOptions;
use litmus::Comparison;

use super::{
    DataType, HostWrite, Lexer, MAX_BUFFER_BYTES, Scalar, Script, ScriptBinding, ScriptBuffer, ScriptError,
    ScriptPlace, ScriptProblem, ScriptRun, ShaderFormat, ShaderText, Tolerance,
};

/// The allowed difference of `~=` without a `tolerance`.
const DEFAULT_TOLERANCE: Tolerance = Tolerance::Absolute(0.01);

const COMPARISONS: [(&str, Comparison); 7] = [
    ("==", Comparison::Equal),
    ("~=", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<", Comparison::Less),
    ("<=", Comparison::LessOrEqual),
    (">", Comparison::Greater),
    (">=", Comparison::GreaterOrEqual),
];

struct TestParser<'t> {
    lexer: Lexer<'t>,
    script: Script,
    /// The environment of the required version of Vulkan.
    environment: String,
    shader: Option<ShaderText>,
    entry: Option<String>,
    push: Vec<u8>,
    bindings: Vec<ScriptBinding>,
    /// Writes of the host before the next dispatch.
    writes: Vec<HostWrite>,
    /// The first dispatch since the last probe. vkrunner submits them at the next one, so that each has the contents of
    /// all writes before it.
    first_waiting_run: Option<usize>,
    tolerances: Vec<Tolerance>,
    is_std140: [bool; 3],
}

/// The layouts that a test may change: those of push constants, uniform and storage buffers.
const LAYOUTS: [&str; 3] = ["push", "ubo", "ssbo"];

/// Parses a test.
///
/// # Errors
/// If a command is malformed or not supported.
pub fn parse(text: &str) -> Result<Script, ScriptError> {
    let mut parser = TestParser {
        lexer: Lexer::new(text),
        script: Script::default(),
        environment: "vulkan1.0".to_owned(),
        shader: None,
        entry: None,
        push: Vec::new(),
        bindings: Vec::new(),
        writes: Vec::new(),
        first_waiting_run: None,
        tolerances: vec![DEFAULT_TOLERANCE],
        is_std140: [false, true, false],
    };
    while let Some(word) = parser.lexer.next_word() {
        if !word.starts_with('[') {
            return Err(parser.lexer.unexpected("a section such as `[compute shader]`"));
        }
        let mut section = word.to_owned();
        while !section.ends_with(']') {
            section += &format!(" {}", parser.lexer.word("`]`")?);
        }
        parser.section(&section)?;
    }
    if parser.script.runs.is_empty() {
        return Err(parser.lexer.error(ScriptProblem::Missing("`compute` in [test]")));
    }
    Ok(parser.script)
}

impl TestParser<'_> {
    fn section(&mut self, section: &str) -> Result<(), ScriptError> {
        let format = match section {
            "[compute shader]" => ShaderFormat::Glsl,
            "[compute shader spirv]" => ShaderFormat::SpirvAssembly,
            "[compute shader binary]" => ShaderFormat::SpirvWords,
            "[test]" => return self.test(),
            // The features come from the module.
            "[require]" | "[comment]" => {
                let text = self.text();
                let version = text.lines().find_map(|line| line.strip_prefix("vulkan "));
                if let Some(version) = version.filter(|_| section == "[require]") {
                    self.environment = format!("vulkan{}", version.trim());
                }
                return Ok(());
            }
            other => return Err(self.unsupported(other.to_owned())),
        };
        if self.shader.is_some() {
            return Err(self.lexer.error(ScriptProblem::Repeated("compute shader")));
        }
        let unexpected = self.lexer.unexpected("a section after `[require]` with a known version of Vulkan");
        let text = self.text();
        self.shader = Some(ShaderText::new(format, text, &self.environment).ok_or(unexpected)?);
        Ok(())
    }

    /// Returns the text up to the next section.
    fn text(&mut self) -> String {
        self.lexer.block(|line| line.starts_with('['))
    }

    fn unsupported(&self, what: String) -> ScriptError {
        self.lexer.error(ScriptProblem::Unsupported(what))
    }

    fn placed<T>(&self, result: Result<T, ScriptProblem>) -> Result<T, ScriptError> {
        result.map_err(|problem| self.lexer.error(problem))
    }

    fn test(&mut self) -> Result<(), ScriptError> {
        while let Some(command) = self.lexer.peek().filter(|word| !word.starts_with('[')) {
            self.lexer.next_word();
            match command {
                "ssbo" | "ubo" | "push" => self.buffer(command)?,
                "uniform" if self.lexer.take_if("ubo") => self.buffer("ubo")?,
                "uniform" => {
                    let ty = self.data_type(0)?;
                    let (offset, values) = (self.lexer.number()?, self.lexer.numbers());
                    ty.write(&mut self.push, offset, &values).map_err(|problem| self.lexer.error(problem))?;
                }
                "compute" => self.compute()?,
                "probe" => self.probe()?,
                "tolerance" => {
                    let tolerances = self.lexer.numbers().into_iter().map(Tolerance::parse).collect();
                    self.tolerances = Option::ok_or_else(tolerances, || self.lexer.unexpected("tolerances"))?;
                }
                other => return Err(self.unsupported(other.to_owned())),
            }
        }
        Ok(())
    }

    /// Reads `SET:BINDING` or `BINDING`.
    fn descriptor(&mut self) -> Result<(u32, u32), ScriptError> {
        let word = self.lexer.word("SET:BINDING")?;
        let (set, binding) = word.split_once(':').unwrap_or(("0", word));
        let place = set.parse().ok().zip(binding.parse().ok());
        place.ok_or_else(|| self.lexer.unexpected("SET:BINDING"))
    }

    fn buffer(&mut self, kind: &str) -> Result<(), ScriptError> {
        let layout = LAYOUTS.iter().position(|name| *name == kind).unwrap_or_default();
        if self.lexer.take_if("layout") {
            self.is_std140[layout] = match self.lexer.word("`std140` or `std430`")? {
                "std140" => true,
                "std430" => false,
                other => return Err(self.unsupported(format!("{kind} layout {other}"))),
            };
            return Ok(());
        }
        if kind == "push" {
            let ty = self.data_type(layout)?;
            let (offset, values) = (self.lexer.number()?, self.lexer.numbers());
            return ty.write(&mut self.push, offset, &values).map_err(|problem| self.lexer.error(problem));
        }
        let at = self.descriptor()?;
        let is_subdata = self.lexer.take_if("subdata");
        let name = format!("{}:{}", at.0, at.1);
        let is_first = self.script.runs.is_empty() || self.first_waiting_run == Some(0);
        let known = self.script.buffers.get(&name).cloned();
        if known.is_none() {
            let (buffer, is_written) = (name.clone(), kind == "ssbo");
            self.bindings.push(ScriptBinding { at, buffer, is_written, is_image: false });
        }
        let mut bytes = known.map(|buffer| buffer.bytes).unwrap_or_default();
        let size = bytes.len();
        let mut ty = DataType::scalar(Scalar::Unsigned(8));
        // Without `subdata`, a number is a size.
        if !is_subdata && self.lexer.peek().is_some_and(|word| word.parse::<u64>().is_ok()) {
            let size: u64 = self.lexer.number()?;
            if size > MAX_BUFFER_BYTES {
                return Err(self.lexer.error(ScriptProblem::TooMany(MAX_BUFFER_BYTES, "bytes of a buffer")));
            }
            bytes.resize(bytes.len().max(size as usize), 0);
        } else {
            ty = self.data_type(layout)?;
            let (offset, values) = (self.lexer.number()?, self.lexer.numbers());
            self.placed(ty.write(&mut bytes, offset, &values))?;
            if !is_first {
                let values = values.into_iter().map(str::to_owned).collect();
                let waiting = self.first_waiting_run.and_then(|run| self.script.runs.get_mut(run));
                let writes = waiting.map_or(&mut self.writes, |run| &mut run.writes);
                writes.push(HostWrite { buffer: name.clone(), ty, offset, values });
            }
        }
        if is_first {
            self.script.buffers.insert(name, ScriptBuffer::new(ty, bytes));
        } else if bytes.len() > size {
            return Err(self.unsupported(format!("{kind} {name} larger after a dispatch")));
        }
        Ok(())
    }

    fn data_type(&mut self, layout: usize) -> Result<DataType, ScriptError> {
        let word = self.lexer.word("a type")?;
        let ty = DataType::from_glsl(word).ok_or_else(|| self.unsupported(word.to_owned()))?;
        Ok(DataType { is_std140: self.is_std140[layout], ..ty })
    }

    fn compute(&mut self) -> Result<(), ScriptError> {
        if self.lexer.take_if("entrypoint") {
            self.entry = Some(self.lexer.word("a name")?.to_owned());
            return Ok(());
        }
        let (line, column) = self.lexer.place();
        let shader = self.shader.clone();
        let shader = shader.ok_or_else(|| self.lexer.error(ScriptProblem::Missing("[compute shader]")))?;
        let mut grid = [0; 3];
        for size in &mut grid {
            *size = self.lexer.number()?;
        }
        let options = AnalysisOptions {
            grid: Some(grid),
            entry: self.entry.clone(),
            push: (0..).zip(self.push.iter().copied()).collect(),
            ..AnalysisOptions::default()
        };
        let (bindings, writes) = (self.bindings.clone(), std::mem::take(&mut self.writes));
        let run = ScriptRun { bindings, writes, ..ScriptRun::new(shader, options, line, column) };
        self.first_waiting_run.get_or_insert(self.script.runs.len());
        let added = self.script.add_run(run);
        self.placed(added)
    }

    fn probe(&mut self) -> Result<(), ScriptError> {
        match self.lexer.word("`ssbo`")? {
            "ssbo" => {}
            other => return Err(self.unsupported(format!("probe {other}"))),
        }
        let (line, _) = self.lexer.place();
        let ty = self.data_type(2)?;
        let (set, binding) = self.descriptor()?;
        self.first_waiting_run = None;
        let offset = self.lexer.number()?;
        let word = self.lexer.word("a comparison")?;
        let comparison = COMPARISONS.iter().find(|(known, _)| *known == word);
        let unexpected = || self.lexer.unexpected("a comparison such as `==`");
        let (_, comparison) = comparison.ok_or_else(unexpected)?;
        if let Some(write) = self.writes.first() {
            return Err(
                self.unsupported(format!("probe after a write to {} without a dispatch", write.buffer))
            );
        }
        let values = self.lexer.values()?;
        // Other numbers are compared exactly.
        let is_fuzzy = word == "~=" && matches!(ty.scalar, Scalar::Float(_));
        let tolerances = if is_fuzzy { self.tolerances.clone() } else { Vec::new() };
        let place = ScriptPlace { line, name: &format!("{set}:{binding}"), offset };
        let expected = self.script.expect_values(place, &ty, *comparison, &values, &tolerances);
        self.placed(expected)
    }
}
