//! What the names of a script stand for: imports under their aliases, and what else was bound to a name.

use std::collections::{HashMap, HashSet};

use super::tree::{Node, Script};

/// All names of a script, by the scope that binds them.
pub(super) struct Names<'s> {
    bindings: HashMap<u32, HashMap<&'s str, Vec<Binding<'s>>>>,
    /// What methods assign to `self.name`, by the class.
    attributes: HashMap<u32, HashMap<&'s str, Vec<Node<'s>>>>,
    /// The modules of `from module import *`.
    pub(super) stars: Vec<&'s str>,
    /// What was imported, by its full name; the name that the script has for it.
    imported: HashMap<String, &'s str>,
}

/// A place that gives a name a meaning.
struct Binding<'s> {
    /// From this node on.
    from: u32,
    what: Bound<'s>,
}

/// What a name was bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Bound<'s> {
    /// The full name: `pandas.read_csv`.
    Import(String),
    Value(Node<'s>),
    /// The part at this place of a value that was taken apart.
    Part(Node<'s>, usize),
    /// One of what this holds, or a part of one.
    Item(Node<'s>),
    /// What `with … as` opened.
    Opened(Node<'s>),
    /// A parameter, with its annotation.
    Parameter(Option<Node<'s>>),
    /// A function or a class of the script.
    Definition(Node<'s>),
    Other,
}

/// Names of libraries that moved, and the names that the rules know them by; the longer ones first.
const MOVED: [(&str, &str); 13] = [
    ("tensorflow.compat.v1.keras.", "keras."),
    ("tensorflow.python.keras.", "keras."),
    ("tensorflow.keras.", "keras."),
    ("keras.utils.np_utils.", "keras.utils."),
    ("keras.api.", "keras."),
    ("sklearn.externals.joblib.", "joblib."),
    ("torch.utils.data.dataloader.", "torch.utils.data."),
    ("torch.utils.data.dataset.", "torch.utils.data."),
    ("multiprocessing.pool.", "multiprocessing."),
    ("torch.multiprocessing.", "multiprocessing."),
    ("cPickle.", "pickle."),
    ("pylab.", "matplotlib.pyplot."),
    ("pytorch_lightning.", "lightning.pytorch."),
];

pub(super) fn canonical(path: &str) -> String {
    let path = format!("{path}.");
    let moved = MOVED
        .iter()
        .find_map(|(old, new)| Some(format!("{new}{}", path.strip_prefix(old)?)));
    let path = moved.unwrap_or(path);
    path.trim_end_matches('.').to_string()
}

impl<'s> Names<'s> {
    pub(super) fn of(script: &'s Script) -> Names<'s> {
        let mut names = Names {
            bindings: HashMap::new(),
            attributes: HashMap::new(),
            stars: Vec::new(),
            imported: HashMap::new(),
        };
        let globals: HashSet<(u32, &str)> = script
            .all("global_statement")
            .flat_map(|node| node.children().map(move |name| (node.scope().id(), name.text())))
            .collect();
        for node in script.nodes() {
            names.take(node, &globals);
        }
        for bindings in names.bindings.values_mut().flat_map(HashMap::values_mut) {
            bindings.sort_by_key(|binding| binding.from);
        }
        names
    }

    fn take(&mut self, node: Node<'s>, globals: &HashSet<(u32, &'s str)>) {
        let mut bind = Binder {
            names: self,
            scope: node.scope(),
            globals,
            from: node.after(),
        };
        match node.kind() {
            "import_statement" => bind.imports(node),
            "import_from_statement" => bind.imports_from(node),
            "function_definition" | "class_definition" => {
                bind.from = node.id();
                bind.target(node.field("name"), Bound::Definition(node));
                bind.scope = node;
                bind.parameters(node);
            }
            "lambda" => {
                bind.from = node.id();
                bind.scope = node;
                bind.parameters(node);
            }
            "assignment" => match (node.field("right"), node.field("type")) {
                (Some(right), _) => bind.target(node.field("left"), Bound::Value(right)),
                (None, annotation) => bind.target(node.field("left"), Bound::Parameter(annotation)),
            },
            "named_expression" => {
                if let Some(value) = node.field("value") {
                    bind.target(node.field("name"), Bound::Value(value));
                }
            }
            "for_statement" | "for_in_clause" => {
                bind.from = node.field("body").map_or(node.after(), Node::id);
                if let Some(right) = node.field("right") {
                    bind.items(node.field("left"), right);
                }
            }
            "as_pattern" => {
                let alias = node.field("alias").and_then(|alias| alias.child(0));
                let opened = node
                    .child(0)
                    .filter(|_| node.parent().is_some_and(|parent| parent.kind() == "with_item"));
                bind.target(alias, opened.map_or(Bound::Other, Bound::Opened));
            }
            _ => {}
        }
    }

    /// What a name means at a place.
    pub(super) fn bound(&self, name: &str, place: Node<'s>) -> Option<&Bound<'s>> {
        let mut scope = place.scope();
        let mut is_own = true;
        loop {
            // The names of a class are not seen from inside its methods.
            if (is_own || scope.kind() != "class_definition")
                && let Some(bindings) = self.bindings.get(&scope.id()).and_then(|names| names.get(name))
            {
                return Some(choose(bindings, is_own.then_some(place.id())));
            }
            scope.parent()?;
            // Comprehensions run where they stand; functions run later, when all is bound.
            is_own = is_own && !scope.is(&["function_definition", "lambda"]);
            scope = scope.scope();
        }
    }

    /// What the methods of a class assign to one of its attributes.
    pub(super) fn attribute(&self, class: Node<'s>, name: &str) -> &[Node<'s>] {
        let of_class = self.attributes.get(&class.id());
        of_class
            .and_then(|names| names.get(name))
            .map_or(&[], Vec::as_slice)
    }

    /// All attributes that the methods of a class assign.
    pub(super) fn attributes_of(&self, class: Node<'s>) -> impl Iterator<Item = Node<'s>> {
        let of_class = self.attributes.get(&class.id());
        of_class
            .into_iter()
            .flat_map(|names| names.values().flatten().copied())
    }

    /// How the script can write a full name with what it imports: `np.float32`.
    pub(super) fn spelled(&self, path: &str) -> Option<String> {
        let heads = std::iter::successors(Some(path), |head| Some(head.rsplit_once('.')?.0));
        let mut known =
            heads.filter_map(|head| Some(format!("{}{}", self.imported.get(head)?, &path[head.len()..])));
        let inside_tensorflow = || Some(format!("{}.{path}", self.imported.get("tensorflow")?));
        match path.starts_with("keras.") {
            true => known.next().or_else(inside_tensorflow),
            false => known.next(),
        }
    }

    /// Whether anything of a library is imported.
    pub(super) fn imports(&self, library: &str) -> bool {
        self.imported.keys().any(|path| {
            path.strip_prefix(library)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        }) || self
            .stars
            .iter()
            .any(|star| star.split('.').next() == Some(library))
    }
}

/// The last binding before a place; of a name that is used elsewhere, the last of all.
fn choose<'a, 's>(bindings: &'a [Binding<'s>], place: Option<u32>) -> &'a Bound<'s> {
    let before = match place {
        Some(place) => bindings.partition_point(|binding| binding.from <= place),
        None => bindings.len(),
    };
    let chosen = &bindings[before.max(1) - 1].what;
    // `except ImportError: pd = None` leaves the import what the name means.
    let is_none = matches!(chosen, Bound::Value(value) if value.kind() == "none");
    let mut all = bindings.iter().map(|binding| &binding.what);
    match is_none {
        true => all
            .rfind(|what| matches!(what, Bound::Import(_)))
            .unwrap_or(chosen),
        false => chosen,
    }
}

/// Where names are being bound.
struct Binder<'a, 's> {
    names: &'a mut Names<'s>,
    scope: Node<'s>,
    globals: &'a HashSet<(u32, &'s str)>,
    from: u32,
}

impl<'s> Binder<'_, 's> {
    fn bind(&mut self, name: &'s str, what: Bound<'s>) {
        let scope = match self.globals.contains(&(self.scope.id(), name)) {
            true => 0,
            false => self.scope.id(),
        };
        let binding = Binding {
            from: self.from,
            what,
        };
        let of_scope = self.names.bindings.entry(scope).or_default();
        of_scope.entry(name).or_default().push(binding);
    }

    fn import(&mut self, name: &'s str, path: String) {
        let path = canonical(&path);
        self.names.imported.entry(path.clone()).or_insert(name);
        self.bind(name, Bound::Import(path));
    }

    fn imports(&mut self, node: Node<'s>) {
        for name in node.children() {
            match (name.kind(), name.field("name"), name.field("alias")) {
                ("aliased_import", Some(path), Some(alias)) => self.import(alias.text(), dotted(path)),
                ("dotted_name", ..) => {
                    if let Some(first) = name.child(0) {
                        self.import(first.text(), first.text().into());
                    }
                }
                _ => {}
            }
        }
    }

    fn imports_from(&mut self, node: Node<'s>) {
        let Some(module) = node.field("module_name") else {
            return;
        };
        for name in node.children().filter(|child| *child != module) {
            match (name.kind(), name.field("name"), name.field("alias")) {
                ("aliased_import", Some(path), Some(alias)) => {
                    self.import(alias.text(), format!("{}.{}", dotted(module), path.text()));
                }
                ("dotted_name", ..) => {
                    self.import(name.text(), format!("{}.{}", dotted(module), name.text()));
                }
                ("wildcard_import", ..) => self.names.stars.push(module.text()),
                _ => {}
            }
        }
    }

    fn parameters(&mut self, node: Node<'s>) {
        let Some(parameters) = node.field("parameters") else {
            return;
        };
        for parameter in parameters.children() {
            let name = match parameter.kind() {
                "identifier" => Some(parameter),
                "typed_parameter" | "list_splat_pattern" | "dictionary_splat_pattern" => parameter.child(0),
                _ => parameter.field("name"),
            };
            self.target(name, Bound::Parameter(parameter.field("type")));
        }
    }

    /// Binds whatever stands on the left of an assignment.
    fn target(&mut self, target: Option<Node<'s>>, what: Bound<'s>) {
        let Some(target) = target else {
            return;
        };
        match target.kind() {
            "identifier" => self.bind(target.text(), what),
            "pattern_list" | "tuple_pattern" | "list_pattern" => {
                for (index, part) in target.children().enumerate() {
                    let what = match &what {
                        Bound::Value(value) => value_part(*value, index),
                        other => other.clone(),
                    };
                    // Patterns inside patterns are rare; what they hold is not followed.
                    match part.kind() {
                        "identifier" => self.bind(part.text(), what),
                        _ => self.all_of(part, what),
                    }
                }
            }
            "attribute" => {
                let class = target.ancestors().find(|node| node.kind() == "class_definition");
                let (object, name) = (target.field("object"), target.field("attribute"));
                if let (Some(class), Some(object), Some(name), Bound::Value(value)) =
                    (class, object, name, what)
                    && object.text() == "self"
                {
                    let of_class = self.names.attributes.entry(class.id()).or_default();
                    of_class.entry(name.text()).or_default().push(value);
                }
            }
            _ => {}
        }
    }

    /// Gives every name inside a pattern the same meaning.
    fn all_of(&mut self, pattern: Node<'s>, what: Bound<'s>) {
        let names = pattern.within().filter(|node| {
            let parent = node.parent().map_or("", Node::kind);
            node.kind() == "identifier" && !matches!(parent, "attribute" | "subscript")
        });
        for name in names {
            self.bind(name.text(), what.clone());
        }
    }

    /// Binds the names of a loop: `enumerate` and `zip` are seen through.
    fn items(&mut self, left: Option<Node<'s>>, right: Node<'s>) {
        let Some(left) = left else {
            return;
        };
        let right = without_progress(right);
        let called = right.field("function").map_or("", Node::text);
        let arguments: Vec<Node> = right
            .field("arguments")
            .map_or(Vec::new(), |list| list.children().collect());
        let parts: Vec<Node> = match left.is(&["pattern_list", "tuple_pattern"]) {
            true => left.children().collect(),
            false => Vec::new(),
        };
        match (called, parts.as_slice(), arguments.as_slice()) {
            ("enumerate", [count, item], [first, ..]) => {
                self.all_of(*count, Bound::Other);
                self.all_of(*item, Bound::Item(without_progress(*first)));
            }
            ("zip", parts, arguments) if !parts.is_empty() && parts.len() == arguments.len() => {
                for (part, argument) in parts.iter().zip(arguments) {
                    self.all_of(*part, Bound::Item(*argument));
                }
            }
            ("range", ..) => self.all_of(left, Bound::Other),
            _ => self.all_of(left, Bound::Item(right)),
        }
    }
}

/// The name of a module without the white space that may stand in it.
fn dotted(node: Node<'_>) -> String {
    node.text().split_whitespace().collect()
}

/// What a loop goes over, without the bar that shows its progress.
pub(super) fn without_progress(node: Node<'_>) -> Node<'_> {
    let called = node.field("function").map_or("", Node::text);
    let last = called.rsplit('.').next().unwrap_or_default();
    let inner = node.field("arguments").and_then(|list| list.child(0));
    match (last, inner) {
        ("tqdm" | "track" | "iter" | "tqdm_notebook" | "progress_bar", Some(inner))
            if node.kind() == "call" =>
        {
            inner
        }
        _ => node,
    }
}

/// `a, b = x, y` binds each to its own; of any other value they are parts.
fn value_part(value: Node<'_>, index: usize) -> Bound<'_> {
    match value.is(&["expression_list", "tuple"]) {
        true => value.child(index).map_or(Bound::Other, Bound::Value),
        false => Bound::Part(value, index),
    }
}
