//! Memory models: the shipped ones by name, and models from users' cat files.

#![deny(clippy::wildcard_enum_match_arm)]

use std::cell::RefCell;
use std::sync::{Arc, LazyLock, Mutex};

use include_dir::{Dir, include_dir};
use litmus::{
    Dialect, LocationInit, MemoryAccess, Observable, Scope, StorageClass, StorageClassSet, Test, ThreadPlace,
};

use crate::PredictError;
use crate::cat::options::{
    AsmoOrder, BarrierReach, CandidateValues, CoveredEvents, CoveredInstructions, FinalValueRule,
    InitialWrites, MemoryOrders, RmwEvents, TestLanguage,
};
use crate::cat::{self, CatErrors, ClassFamilies, CompiledModel, Membership, Vocabulary};
use crate::cells::Extent;
use crate::combinations::for_each_skeleton;
use crate::flags::Flags;
use crate::prepared::ModelPlans;
use crate::quick::QuickMap;
use crate::skeleton::{BASE_RELATIONS, BASE_SETS, ExecutionSemantics};
use crate::supported::{instruction_scopes, required_extension};
use crate::system::TestFeatures;

/// Limit of prepared event structures per test; further ones have the same facts.
const MAX_PREPARED_SKELETONS: usize = 256;

static SHIPPED_FILES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/cat");

/// The shipped models, with descriptions.
const SHIPPED_MODELS: &[(&str, &str)] = &[
    ("vulkan", "the Vulkan memory model, latest text: 1.4.360"),
    ("vulkan-nochains", "the same without availability and visibility chains"),
    (
        "vulkan-by-letter",
        "the same text; an arrival at a split barrier synchronizes with the waits of all rounds",
    ),
    ("vulkan-apart", "the same text; diverged lanes reconverge only where the whole workgroup does"),
    ("vulkan-together", "the same text; diverged lanes reconverge immediately after the branch"),
    ("vulkan-1.4.305", "the Vulkan memory model, text of 1.3.301 to 1.4.350: without split barriers"),
    ("vulkan-1.4.305-nochains", "the same without availability and visibility chains"),
    ("vulkan-2024", "the Vulkan memory model, text of 2024: from-reads without location order"),
    ("vulkan-2024-nochains", "the same without availability and visibility chains"),
    ("vulkan-1.2", "the Vulkan memory model, text of Vulkan 1.2"),
    ("vulkan-1.2-nochains", "the same without availability and visibility chains"),
    ("vulkan-2019", "the Vulkan memory model, text of 2019"),
    ("vulkan-2019-nochains", "the same without availability and visibility chains"),
    ("dartagnan", "Dartagnan's Vulkan model"),
    ("dartagnan-nochains", "the same without availability and visibility chains"),
    ("khronos-alloy", "Khronos' Alloy model"),
    ("khronos-alloy-nochains", "the same without availability and visibility chains"),
    ("sc", "sequential consistency"),
    ("tso", "total store order"),
    ("ptx", "NVIDIA's PTX memory model, without proxies"),
    ("opencl", "the OpenCL memory model, 2.0 to 3.0, with scoped sequential consistency"),
    ("opencl-3.1", "the same with the inclusive scopes of OpenCL 3.1"),
    ("amdgpu", "LLVM's memory model for AMD's GPUs, with availability and visibility"),
    ("wgsl", "the memory model of WGSL: relaxed atomics and barriers of workgroups, mapped to `vulkan`"),
    ("hsa", "the HSA memory model, Platform System Architecture 1.2, for tests of the HSA dialect"),
];

/// The shipped model `sc`, which determines if outcomes are weak.
pub(crate) static SEQUENTIAL: LazyLock<Option<Model>> =
    LazyLock::new(|| Model::shipped("sc").and_then(Result::ok));
/// Serial execution of whole threads, which determines if outcomes are interleaved.
pub(crate) static SERIAL: LazyLock<Option<Model>> =
    LazyLock::new(|| Model::parse("serial", Model::shipped_text("serial")?, &|_| None).ok());

/// A memory model, compiled on demand for each test's features.
#[derive(Debug)]
pub struct Model {
    name: String,
    ast: cat::CatModel,
    /// The model's text and the texts that it includes.
    sources: Vec<String>,
    /// True for a shipped model without changes.
    is_shipped: bool,
    /// Compiled plans by the features of a test: its storage classes in the low bits, its [`TestFeatures`] above.
    plans: Mutex<QuickMap<u16, Arc<ModelPlans>>>,
}

impl Model {
    /// Returns the names of the shipped models, each with a one-line description.
    pub fn shipped_models() -> &'static [(&'static str, &'static str)] {
        SHIPPED_MODELS
    }

    /// Returns a shipped model; `None` for an unknown name.
    ///
    /// # Errors
    ///
    /// None for the shipped models; tests load each of them.
    pub fn shipped(name: &str) -> Option<Result<Model, CatErrors>> {
        let (name, _) = SHIPPED_MODELS.iter().find(|(known, _)| *known == name)?;
        let text = Model::shipped_text(name)?;
        // A test compiles every shipped text completely.
        Some(Model::parse(name, text, &|_| None).map(|model| Model { is_shipped: true, ..model }))
    }

    /// Returns the text of a shipped model.
    pub fn shipped_text(name: &str) -> Option<&'static str> {
        SHIPPED_FILES.get_file(format!("{name}.cat"))?.contents_utf8()
    }

    /// Compiles a model from the text of a cat file.
    ///
    /// `include` returns the text of an included file by its name; shipped files need no lookup.
    ///
    /// # Errors
    ///
    /// All errors of the text, with their positions.
    pub fn from_text(
        name: &str,
        text: &str,
        include: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Model, CatErrors> {
        let model = Model::parse(name, text, include)?;
        model.compile_completely()?;
        Ok(model)
    }

    /// Compiles the model for all features, which reports every semantic error.
    fn compile_completely(&self) -> Result<CompiledModel, CatErrors> {
        cat::compile(&self.ast, &vocabulary(), &class_families(StorageClassSet(0b1111), TestFeatures::ALL))
    }

    /// As [`Model::from_text`], with syntax errors only.
    fn parse(name: &str, text: &str, include: &dyn Fn(&str) -> Option<String>) -> Result<Model, CatErrors> {
        let shipped_file = |file: &str| {
            let found =
                SHIPPED_FILES.get_file(file).or_else(|| SHIPPED_FILES.get_file(format!("herd/{file}")));
            found.and_then(|found| found.contents_utf8()).map(str::to_owned)
        };
        let sources = RefCell::new(vec![text.to_owned()]);
        let resolve = |file: &str| {
            // herd computes coherence with sets of orders there; the engine enumerates it itself.
            let is_builtin = matches!(file, cat::HERD_ORDERS_FILE | "stdlib.cat");
            let user_text = if is_builtin { None } else { include(file) };
            let found = user_text.or_else(|| shipped_file(file));
            sources.borrow_mut().extend(found.clone());
            found
        };
        let ast = cat::parse_model(name, text, &resolve)?;
        let sources = sources.into_inner();
        Ok(Model { name: name.to_owned(), ast, sources, is_shipped: false, plans: Mutex::default() })
    }

    /// Returns the model with another syntax tree, for example a mutated one.
    pub(crate) fn with_ast(&self, ast: cat::CatModel) -> Model {
        let (name, sources) = (self.name.clone(), self.sources.clone());
        Model { name, ast, sources, is_shipped: false, plans: Mutex::default() }
    }

    /// Returns true if a changed model still compiles.
    pub(crate) fn can_compile(&self) -> bool {
        self.compile_completely().is_ok()
    }

    /// Returns the syntax tree.
    pub(crate) fn ast(&self) -> &cat::CatModel {
        &self.ast
    }

    /// Returns the source texts: the model's own and the included ones, in the order of inclusion.
    pub fn sources(&self) -> impl Iterator<Item = &str> {
        self.sources.iter().map(String::as_str)
    }

    /// Returns the name under which the model was loaded.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the default model of a dialect.
    pub fn default_for_dialect(dialect: Dialect) -> &'static str {
        match dialect {
            Dialect::Vulkan | Dialect::Khronos => "vulkan",
            Dialect::Hsa => "hsa",
        }
    }

    /// The names that [`Model::default_for_test`] returns.
    pub const DEFAULTS: [&str; 3] = ["vulkan", "hsa", "opencl"];

    /// Returns the default model of a test: that of its dialect, or `opencl` for sequentially consistent
    /// operations, which Vulkan does not have.
    pub fn default_for_test(test: &Test) -> &'static str {
        if test.has_sequential_operations() { "opencl" } else { Model::default_for_dialect(test.dialect) }
    }

    /// Returns true if the model supports tests of a dialect; [`crate::predict`] refuses the others.
    pub fn supports_dialect(&self, dialect: Dialect) -> bool {
        [TestLanguage::Any, language_of(dialect)].contains(&self.ast.options.language)
    }

    /// Returns true if the model defines a race condition, a `flag` that makes a program undefined.
    ///
    /// # Errors
    ///
    /// As for [`crate::predict`].
    pub fn has_race_condition(&self, test: &Test) -> Result<bool, PredictError> {
        let is_race = |name: Option<&str>| name != Some(Flags::UNINITIALISED);
        let axioms = &self.model_plans_for(test)?.plan.axioms;
        Ok(axioms.iter().any(|axiom| axiom.is_flag && is_race(axiom.name.as_deref())))
    }

    /// Compiles the plans that a test and its queries need in advance.
    ///
    /// # Errors
    ///
    /// As for [`crate::predict`].
    pub fn prepare(&self, test: &Test) -> Result<(), PredictError> {
        let compiled = self.model_plans_for(test)?;
        let queries = test.khronos.iter().flat_map(|khronos| &khronos.queries);
        let query_plans: Vec<Arc<ModelPlans>> =
            queries.filter_map(|query| compiled.plans_for_query(&query.terms)).collect();
        let mut remaining = MAX_PREPARED_SKELETONS;
        let prepared = for_each_skeleton(test, self.execution_semantics(), 1, &mut |skeleton| {
            compiled.prepare_plan(&skeleton);
            for query in &query_plans {
                query.prepare_plan(&skeleton);
            }
            remaining -= 1;
            Ok(remaining > 0)
        });
        match prepared {
            // The encoding of the whole program needs no list of paths.
            Err(PredictError::TooManyPaths { .. }) => Ok(()),
            prepared => prepared,
        }
    }

    /// Returns the complete plan for the storage classes of a test.
    pub fn plan_for(&self, test: &Test) -> Result<Arc<CompiledModel>, PredictError> {
        Ok(self.model_plans_for(test)?.plan.clone())
    }

    /// Returns the complete plan for the storage classes of a test, with every feature enabled.
    #[cfg(feature = "testing")]
    pub fn plan_with_all_features(&self, test: &Test) -> Result<Arc<CompiledModel>, PredictError> {
        Ok(self.model_plans_for_features(classes_of(test), TestFeatures::ALL)?.plan.clone())
    }

    /// Returns the model compiled for the storage classes of a test.
    pub(crate) fn model_plans_for(&self, test: &Test) -> Result<Arc<ModelPlans>, PredictError> {
        if !self.supports_dialect(test.dialect) {
            return Err(PredictError::UnsupportedDialect {
                test: language_name(language_of(test.dialect)),
                model: self.name.clone(),
                of: language_name(self.ast.options.language),
            });
        }
        self.model_plans_for_features(classes_of(test), features_of(test))
    }

    fn model_plans_for_features(
        &self,
        classes: StorageClassSet,
        features: TestFeatures,
    ) -> Result<Arc<ModelPlans>, PredictError> {
        // The four storage classes occupy the low bits.
        let kind = u16::from(classes.0) | (features.0 << 4);
        if let Ok(plans) = self.plans.lock()
            && let Some(compiled) = plans.get(&kind)
        {
            return Ok(compiled.clone());
        }
        let (vocabulary, families) = (vocabulary(), class_families(classes, features));
        let extended = features
            .contains(TestFeatures::UNDEFINED)
            .then(|| cat::with_uninitialised_reads(&self.ast))
            .transpose();
        let extended = extended.map_err(PredictError::Model)?;
        let ast = extended.as_ref().unwrap_or(&self.ast);
        let mut plan = cat::compile(ast, &vocabulary, &families).map_err(PredictError::Model)?;
        if self.ast.options.asmo == AsmoOrder::Transitive && !plan.require_transitive("asmo") {
            let why = "`asmo=transitive` without a definition of `asmo`";
            return Err(PredictError::NotAvailable { what: why.to_owned() });
        }
        let compiled = Arc::new(ModelPlans::new(plan, vocabulary, families));
        // Another thread may have compiled the same kind meanwhile; both results are equal.
        if let Ok(mut plans) = self.plans.lock() {
            plans.insert(kind, compiled.clone());
        }
        Ok(compiled)
    }

    /// Returns the model's requirements on candidate executions.
    pub fn execution_semantics(&self) -> ExecutionSemantics {
        let options = &self.ast.options;
        let is_shipped_vulkan = self.is_shipped
            && options.events == CoveredEvents::All
            && options.language == TestLanguage::Vulkan;
        ExecutionSemantics {
            has_fused_rmw: options.rmw == RmwEvents::Fused,
            has_initial_write_per_name: options.init == InitialWrites::PerName,
            has_global_barriers: options.barrier == BarrierReach::Any,
            has_final_device_read: options.final_value == FinalValueRule::DeviceRead,
            allows_thin_air: options.values == CandidateValues::Free,
            has_full_language: options.events == CoveredEvents::All,
            has_byte_cells: false,
            has_whole_vectors: false,
            has_sequential_orders: options.orders == MemoryOrders::Sequential,
            is_wgsl: options.instructions == CoveredInstructions::Wgsl,
            tangle_rule: options.tangle_rule,
            has_scope_symmetry: is_shipped_vulkan,
            is_shipped_vulkan,
        }
    }
}

fn language_of(dialect: Dialect) -> TestLanguage {
    match dialect {
        Dialect::Vulkan | Dialect::Khronos => TestLanguage::Vulkan,
        Dialect::Hsa => TestLanguage::Hsa,
    }
}

fn language_name(language: TestLanguage) -> &'static str {
    match language {
        TestLanguage::Vulkan => "Vulkan",
        TestLanguage::Hsa => "HSA",
        TestLanguage::Any => "Vulkan and HSA",
    }
}

/// The number of storage classes.
const CLASS_COUNT: u8 = StorageClass::ALL.len() as u8;

/// Returns the names that a model may use.
fn vocabulary() -> Vocabulary {
    Vocabulary::new()
        .with_sets(BASE_SETS.iter().map(|(name, _)| *name).chain(["M", "A", "PRIV", "GLOBAL", "GROUP"]))
        .with_relations(BASE_RELATIONS.iter().map(|(name, _)| *name))
        .with_indexed_set("SC", Membership::Any, CLASS_COUNT)
        .with_indexed_set("SEM", Membership::All, CLASS_COUNT)
        .with_class_names("SEMSC", "SEM", CLASS_COUNT)
        .with_rank("rf", 1)
        .with_rank("co", 2)
}

/// Returns the storage classes and masks that a program with these classes distinguishes, and its absent
/// features.
fn class_families(classes: StorageClassSet, features: TestFeatures) -> ClassFamilies {
    let absent = features.absent_bases().map(str::to_owned).collect();
    ClassFamilies { absent, ..ClassFamilies::from_classes(classes.iter().map(|class| class.index() as u8)) }
}

/// Returns the optional features that a test uses.
fn features_of(test: &Test) -> TestFeatures {
    // A name of a part of a storage shows that part if it is observed.
    let is_partial = |observable: &Observable| match observable {
        Observable::Location(location, component) => {
            !Extent::from_component(test, *location, *component).is_whole
        }
        Observable::Register(..) => false,
    };
    let aliases = test.locations.iter().any(|location| matches!(location.init, LocationInit::AliasOf(_)));
    let mut features = TestFeatures::default();
    features.add_if(TestFeatures::PARTS, aliases && test.observables().iter().any(is_partial));
    features.add_if(TestFeatures::UNDEFINED, test.has_undefined_locations());
    features.add_if(TestFeatures::SEQUENTIAL, test.has_sequential_operations());
    for thread in &test.threads {
        features.add_if(TestFeatures::HOSTS, thread.place == ThreadPlace::Host);
        for instruction in &thread.instructions {
            let kind = &instruction.kind;
            let is_vector = kind.access().is_some_and(MemoryAccess::is_vector);
            features.add_if(TestFeatures::VECTORS, is_vector);
            if let Some(extension) = required_extension(test, kind) {
                features.add_if(extension.feature, true);
            }
            for scope in instruction_scopes(kind) {
                features.add_if(TestFeatures::CALLS, scope == Scope::ShaderCall);
                features.add_if(TestFeatures::INTERLOCK, scope == Scope::FragmentInterlock);
            }
        }
    }
    features
}

/// Returns the storage classes that accesses or semantics of a test name.
fn classes_of(test: &Test) -> StorageClassSet {
    let mut bits = 0;
    for instruction in test.threads.iter().flat_map(|thread| &thread.instructions) {
        if let Some(access) = instruction.kind.access() {
            bits |= 1 << access.place.class.index();
        }
        bits = instruction.kind.semantics().fold(bits, |bits, semantics| bits | semantics.classes.0);
    }
    StorageClassSet(bits)
}
