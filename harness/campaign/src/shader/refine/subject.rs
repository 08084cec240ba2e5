//! The shaders that `refine --through` compiles: files, and litmus tests as GLSL.
//!
//! In a closed world, a test is one shader with all of its threads. In an open world, each workgroup of a test is
//! a shader: the others are a part of the environment. It declares each buffer that it does not write as
//! `readonly`, as compilers of languages with immutable references do.

use std::collections::BTreeSet;
use std::path::Path;

use litmus::convert::{ConvertError, to_vulkan};
use litmus::glsl::to_glsl;
use litmus::{
    Comparison, Condition, Question, QuestionKind, RegisterId, Span, Term, Test, ThreadId, ThreadPlace,
};

use crate::Failure;

/// A shader to compile.
#[derive(Clone, Debug)]
pub struct RefineSubject {
    /// The name in output: a path, or the id of a test.
    pub name: String,
    pub path: String,
    /// Workgroups of the dispatch and invocations per subgroup, for a test.
    pub dispatch: Option<([u32; 3], Option<u32>)>,
    pub test: Option<Test>,
}

impl RefineSubject {
    pub fn from_shader(path: &str) -> RefineSubject {
        RefineSubject { name: path.to_owned(), path: path.to_owned(), dispatch: None, test: None }
    }

    /// Writes a test as a shader below `folder`.
    ///
    /// # Errors
    /// If GLSL cannot express the test, or the file cannot be written.
    pub fn from_test(name: &str, test: &Test, folder: &Path) -> Result<RefineSubject, SubjectError> {
        let glsl = to_glsl(&to_vulkan(test)?)?;
        let mut source = glsl.source;
        for (index, _) in test.locations.iter().enumerate().filter(|(index, _)| !is_written(test, *index)) {
            source =
                source.replace(&format!("buffer Memory{index} "), &format!("readonly buffer Memory{index} "));
        }
        let file: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        // Only fragments have no subgroup size.
        let extension = if glsl.subgroup_size.is_some() { "comp" } else { "frag" };
        let path = folder.join(format!("{file}.{extension}")).display().to_string();
        std::fs::write(&path, source)
            .map_err(|error| SubjectError::Write(Failure::environment_error(error)))?;
        let dispatch = Some((glsl.grid, glsl.subgroup_size));
        Ok(RefineSubject { name: name.to_owned(), path, dispatch, test: Some(test.clone()) })
    }
}

/// The reason why a test cannot be compared.
#[derive(Debug)]
pub enum SubjectError {
    /// GLSL cannot express it.
    Convert(ConvertError),
    /// The file cannot be written.
    Write(Failure),
}

impl From<ConvertError> for SubjectError {
    fn from(error: ConvertError) -> SubjectError {
        SubjectError::Convert(error)
    }
}

/// Returns true if a thread of a test writes a location.
fn is_written(test: &Test, location: usize) -> bool {
    let code = test.threads.iter().flat_map(|thread| &thread.instructions);
    let mut accesses = code.filter_map(|instruction| instruction.kind.access());
    accesses.any(|access| access.is_write() && usize::from(access.place.location.0) == location)
}

/// Returns the name and the threads of each workgroup of a test, as a test that observes every read value.
pub fn split_by_workgroup(name: &str, test: &Test) -> Vec<(String, Test)> {
    let workgroup_of = |place: &ThreadPlace| match place {
        ThreadPlace::Device(placement) => {
            Some((placement.queue_family, placement.queue, placement.workgroup))
        }
        _ => None,
    };
    // Other synchronization between threads names them, which GLSL cannot express.
    let is_device = |thread: &litmus::Thread| workgroup_of(&thread.place).is_some();
    if !test.system_sync.is_empty() || !test.threads.iter().all(is_device) {
        return vec![(name.to_owned(), test.clone())];
    }
    let all: BTreeSet<_> = test.threads.iter().filter_map(|thread| workgroup_of(&thread.place)).collect();
    all.into_iter()
        .map(|workgroup| {
            let mut part = test.clone();
            part.threads.retain(|thread| workgroup_of(&thread.place) == Some(workgroup));
            part.filter = None;
            part.listed_terms.clear();
            part.question = question_about_reads(&part);
            let threads: Vec<String> =
                part.threads.iter().map(|thread| format!("P{}", thread.number)).collect();
            (format!("{name} {}", threads.join(",")), part)
        })
        .collect()
}

/// Returns a question about every register that an access writes; `None` if there is none.
fn question_about_reads(test: &Test) -> Option<Question> {
    let mut registers: BTreeSet<(u16, u16)> = BTreeSet::new();
    for (thread, code) in test.threads.iter().enumerate() {
        for instruction in &code.instructions {
            let destinations = instruction.kind.destinations();
            registers.extend(destinations.into_iter().map(|register| (thread as u16, register.0)));
        }
    }
    let is_zero = |(thread, register): (u16, u16)| Condition::Compare {
        left: Term::Register(ThreadId(thread), RegisterId(register)),
        comparison: Comparison::Equal,
        right: Term::Constant(0),
    };
    let all = registers.into_iter().map(is_zero);
    let condition = all.reduce(|all, one| Condition::And(Box::new(all), Box::new(one)))?;
    Some(Question { kind: QuestionKind::Exists, condition, span: Span::default() })
}
