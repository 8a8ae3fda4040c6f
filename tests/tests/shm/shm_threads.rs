//! Every case on ranks that are threads of this process.

use tasuki_tests::{case_runner, each_case};

macro_rules! test_of {
    (Processes $name:ident) => {};
    ($ways:ident $name:ident) => {
        #[test]
        fn $name() {
            case_runner::on_threads(stringify!($name));
        }
    };
}

macro_rules! tests {
    ($($ways:ident $id:literal $least:literal..=$most:literal $module:ident::$name:ident;)*) => {
        mod shm_threads {
            use super::case_runner;
            $(test_of!($ways $name);)*
        }
    };
}

each_case!(tests);
