//! What libraries say about mistakes in the program or its surroundings: shapes, types, indices, libraries, files.

use super::wording::{Wording, wording};
use crate::why::Cause::{
    Failed, IndexError, LibraryVersion, MissingFile, NotANumber, Permission, ShapeError, TypeError,
};

const SHAPES: &str = "Two arrays, or an array and a layer, do not fit together";
const SAVED: &str = "A saved model does not fit the model that is to take it";
const TYPES: &str = "A number is of another type than was expected";
const LIBRARY: &str = "A library is not of the version that another one needs";
const NOT_FINITE: &str = "The loss became infinite or not a number";

/// Only of errors: where a program warns of such a thing and goes on, it is none.
pub(super) const ERRORS: &[Wording] = &[
    // Shapes.
    wording(
        &["mat1 and mat2 shapes cannot be multiplied ("],
        ShapeError,
        SHAPES,
    ),
    wording(&["mat1 dim 1 must match mat2 dim 0"], ShapeError, SHAPES),
    wording(&["size mismatch, m1: ["], ShapeError, SHAPES),
    wording(
        &["size mismatch for ", "copying a param with shape "],
        ShapeError,
        SAVED,
    ),
    wording(&["Error(s) in loading state_dict for "], ShapeError, SAVED).likely(),
    wording(
        &["operands could not be broadcast together with shapes "],
        ShapeError,
        SHAPES,
    ),
    wording(
        &["operands could not be broadcast together with remapped shapes "],
        ShapeError,
        SHAPES,
    ),
    wording(
        &["shape mismatch: objects cannot be broadcast to a single shape"],
        ShapeError,
        SHAPES,
    ),
    wording(
        &["could not broadcast input array from shape "],
        ShapeError,
        SHAPES,
    ),
    wording(&["shapes (", ") and (", ") not aligned: "], ShapeError, SHAPES),
    wording(
        &["matmul: Input operand 1 has a mismatch in its core dimension"],
        ShapeError,
        SHAPES,
    ),
    wording(
        &["The size of tensor a (", ") must match the size of tensor b ("],
        ShapeError,
        SHAPES,
    ),
    wording(
        &["Sizes of tensors must match except in dimension "],
        ShapeError,
        SHAPES,
    ),
    wording(
        &["Expected input batch_size (", ") to match target batch_size ("],
        ShapeError,
        SHAPES,
    ),
    wording(
        &["Target size (", ") must be the same as input size ("],
        ShapeError,
        SHAPES,
    ),
    wording(
        &["shape '[", "]' is invalid for input of size "],
        ShapeError,
        SHAPES,
    ),
    wording(
        &["cannot reshape array of size ", "into shape "],
        ShapeError,
        SHAPES,
    ),
    wording(
        &["Given groups=", "weight of size [", "channels instead"],
        ShapeError,
        SHAPES,
    ),
    wording(
        &["stack expects each tensor to be equal size"],
        ShapeError,
        SHAPES,
    ),
    wording(
        &["Expected more than 1 value per channel when training"],
        ShapeError,
        "A batch of one row cannot be normalized",
    ),
    wording(
        &["Input 0 of layer ", "is incompatible with the layer"],
        ShapeError,
        SHAPES,
    ),
    wording(
        &["Input ", " of layer \"", "is incompatible with the layer"],
        ShapeError,
        SHAPES,
    ),
    wording(&["Dimensions must be equal, but are "], ShapeError, SHAPES),
    wording(&["Incompatible shapes: "], ShapeError, SHAPES),
    wording(&["Incompatible shapes for broadcasting: "], ShapeError, SHAPES),
    wording(&["Shapes (", ") and (", ") are incompatible"], ShapeError, SHAPES),
    wording(
        &["dot_general requires contracting dimensions to have the same shape"],
        ShapeError,
        SHAPES,
    ),
    wording(&["all input arrays must have the same shape"], ShapeError, SHAPES),
    wording(
        &["all the input array dimensions except for the concatenation axis must match"],
        ShapeError,
        SHAPES,
    ),
    wording(
        &["all the input array dimensions for the concatenation axis must match"],
        ShapeError,
        SHAPES,
    ),
    wording(
        &["The requested array has an inhomogeneous shape"],
        ShapeError,
        SHAPES,
    )
    .anywhere(),
    wording(
        &["Found input variables with inconsistent numbers of samples: "],
        ShapeError,
        SHAPES,
    ),
    wording(
        &["X has ", " features, but ", "is expecting "],
        ShapeError,
        SHAPES,
    ),
    wording(&["Feature shape mismatch, expected: "], ShapeError, SHAPES),
    wording(
        &[
            "The number of features in data (",
            "is not the same as it was in training data",
        ],
        ShapeError,
        SHAPES,
    ),
    wording(
        &["Length of values (", "does not match length of index ("],
        ShapeError,
        SHAPES,
    ),
    wording(&["All arrays must be of the same length"], ShapeError, SHAPES),
    // Types.
    wording(&["expected scalar type ", " but found "], TypeError, TYPES),
    wording(
        &["Expected object of scalar type ", " but got scalar type "],
        TypeError,
        TYPES,
    ),
    wording(&["expected m1 and m2 to have the same dtype"], TypeError, TYPES),
    wording(&["mat1 and mat2 must have the same dtype"], TypeError, TYPES),
    wording(
        &["Input type (", ") and weight type (", ") should be the same"],
        TypeError,
        TYPES,
    ),
    wording(
        &["Input type (", ") and bias type (", ") should be the same"],
        TypeError,
        TYPES,
    ),
    wording(
        &["Expected all tensors to be on the same device, but found at least two devices"],
        TypeError,
        "Tensors are on different devices",
    ),
    wording(
        &["result type ", "can't be cast to the desired output type "],
        TypeError,
        TYPES,
    ),
    wording(
        &["\" not implemented for '"],
        TypeError,
        "An operation is not there for this type of number",
    )
    .anywhere(),
    wording(
        &["could not convert string to float"],
        TypeError,
        "A text stands where a number was expected",
    ),
    wording(
        &["can't convert np.ndarray of type numpy.object_"],
        TypeError,
        "An array holds objects where numbers were expected",
    ),
    wording(
        &["Failed to convert a NumPy array to a Tensor (Unsupported object type"],
        TypeError,
        "An array holds objects where numbers were expected",
    ),
    wording(
        &["ufunc '", "did not contain a loop with signature matching types"],
        TypeError,
        TYPES,
    ),
    wording(
        &["Cannot cast ufunc '", "from dtype(", "with casting rule "],
        TypeError,
        TYPES,
    ),
    wording(
        &["Cannot cast array data from dtype(", "according to the rule "],
        TypeError,
        TYPES,
    ),
    wording(
        &["DataFrame.dtypes for data must be int, float, bool or categor"],
        TypeError,
        "A column holds texts where numbers were expected",
    ),
    wording(
        &["pandas dtypes must be int, float or bool"],
        TypeError,
        "A column holds texts where numbers were expected",
    ),
    // Indices.
    wording(
        &["index out of range in self"],
        IndexError,
        "A number is not below the size of the embedding",
    ),
    wording(
        &["Target ", " is out of bounds."],
        IndexError,
        "A label is not below the number of classes",
    ),
    wording(
        &["indices[", "] = ", " is not in [0, "],
        IndexError,
        "An index is out of bounds",
    )
    .anywhere(),
    wording(
        &[
            "Received a label value of ",
            "which is outside the valid range of ",
        ],
        IndexError,
        "A label is not below the number of classes",
    ),
    wording(
        &["index out of bounds: the len is ", "but the index is "],
        IndexError,
        "An index is out of bounds",
    )
    .anywhere(),
    // Libraries.
    wording(&["undefined symbol: "], LibraryVersion, LIBRARY),
    wording(
        &["cannot open shared object file: No such file or directory"],
        LibraryVersion,
        "A library is missing",
    )
    .unless(&["Could not load dynamic library", "dlerror"]),
    wording(
        &[" size changed, may indicate binary incompatibility"],
        LibraryVersion,
        LIBRARY,
    )
    .anywhere()
    .unless(&["RuntimeWarning"]),
    wording(
        &["ModuleNotFoundError: No module named "],
        LibraryVersion,
        "A module is not installed",
    ),
    wording(
        &["ImportError: No module named "],
        LibraryVersion,
        "A module is not installed",
    ),
    wording(
        &["cannot allocate memory in static TLS block"],
        LibraryVersion,
        "A library was loaded too late to get its share of memory for threads",
    )
    .likely(),
    wording(
        &["numpy.core.multiarray failed to import"],
        LibraryVersion,
        LIBRARY,
    ),
    wording(
        &["cannot import name '", "circular import"],
        Failed,
        "Two modules import each other",
    ),
    wording(
        &["cannot import name '"],
        LibraryVersion,
        "A library does not have what the program imports from it",
    )
    .likely(),
    wording(
        &["module '", "' has no attribute '"],
        LibraryVersion,
        "A library does not have what the program uses of it",
    )
    .likely()
    .unless(&["'__main__'"]),
    wording(
        &["` was removed in the NumPy ", " release."],
        LibraryVersion,
        "NumPy no longer has what the program uses of it",
    )
    .anywhere(),
    wording(
        &["` was removed from the ", " namespace"],
        LibraryVersion,
        "A library no longer has what the program uses of it",
    )
    .likely()
    .anywhere(),
    wording(&["VersionConflict: "], LibraryVersion, LIBRARY).anywhere(),
    // Files.
    wording(
        &["PermissionError: [Errno 13] Permission denied"],
        Permission,
        "A file may not be read or written",
    )
    .anywhere(),
    wording(
        &["PermissionError: [Errno 1] Operation not permitted"],
        Permission,
        "The system does not permit this",
    )
    .anywhere(),
    wording(&["FileNotFoundError: "], MissingFile, "A file is not there").anywhere(),
    // Losses, where the program itself gives up; see also `loss.rs`.
    wording(
        &["The loss returned in `training_step` is "],
        NotANumber,
        NOT_FINITE,
    ),
    wording(
        &["Function '", "' returned nan values in its "],
        NotANumber,
        "A gradient became not a number",
    ),
    wording(&["Minimum loss scale reached ("], NotANumber, NOT_FINITE),
    wording(
        &["Current loss scale already at minimum - cannot decrease scale anymore"],
        NotANumber,
        NOT_FINITE,
    ),
    wording(
        &["FloatingPointError: invalid value (nan) encountered in"],
        NotANumber,
        "A value became not a number",
    )
    .anywhere(),
    wording(
        &["Tensor had NaN values"],
        NotANumber,
        "A tensor became not a number",
    )
    .anywhere(),
    wording(
        &["probability tensor contains either `inf`, `nan` or element < 0"],
        NotANumber,
        "The model's output became infinite or not a number",
    )
    .likely(),
    wording(
        &["to satisfy the constraint ", "but found invalid values"],
        NotANumber,
        "The model's output became not a number",
    )
    .anywhere()
    .likely(),
];

/// Whoever says it.
pub(super) const PLAIN: &[Wording] = &[
    wording(
        &["bash: ", ": Permission denied"],
        Permission,
        "A command may not be run",
    )
    .likely(),
    wording(
        &["sh: ", ": Permission denied"],
        Permission,
        "A command may not be run",
    )
    .likely(),
    wording(
        &["can't open file '", "[Errno 2] No such file or directory"],
        MissingFile,
        "The script is not there",
    ),
    wording(
        &["bash: ", ": No such file or directory"],
        MissingFile,
        "A command or a file is not there",
    )
    .likely(),
    wording(
        &["sh: ", ": No such file or directory"],
        MissingFile,
        "A command or a file is not there",
    )
    .likely(),
    wording(
        &["bash: ", ": command not found"],
        MissingFile,
        "A command is not there",
    )
    .likely(),
    wording(&["sh: ", ": not found"], MissingFile, "A command is not there").likely(),
    wording(&[": Invalid loss, terminating training"], NotANumber, NOT_FINITE).anywhere(),
    wording(
        &["Monitored metric ", "is not finite."],
        NotANumber,
        "The watched metric became infinite or not a number",
    )
    .anywhere(),
    wording(&["NaN loss during training"], NotANumber, NOT_FINITE),
    wording(&["Model diverged with loss = NaN"], NotANumber, NOT_FINITE),
    wording(
        &["Network outputs is NAN! Stop Training"],
        NotANumber,
        "The model's output became not a number",
    ),
    wording(
        &["version `", "' not found (required by "],
        LibraryVersion,
        LIBRARY,
    )
    .anywhere(),
    wording(
        &["A module that was compiled using NumPy 1.x cannot be run in"],
        LibraryVersion,
        "A library was built for NumPy 1 and finds NumPy 2",
    )
    .likely(),
    wording(
        &["python", ": No module named "],
        LibraryVersion,
        "A module is not installed",
    )
    .unless(&["Error", "Warning"]),
    wording(
        &["error while loading shared libraries: "],
        LibraryVersion,
        "A library is missing",
    ),
    wording(&["symbol lookup error: "], LibraryVersion, LIBRARY),
];
