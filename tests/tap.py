"""tap: runs the tests of the calling file, in TAP when it is called with --tap, else as unittest does."""
import sys
import unittest


class _Tap(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.count = 0

    def _line(self, status, test, note="", text=""):
        self.count += 1
        print("%s %d - %s%s" % (status, self.count, test.id().split(".", 1)[-1], note))
        for line in text.splitlines()[-12:]:
            print("# " + line)
        sys.stdout.flush()

    def addSuccess(self, test):
        self._line("ok", test)

    def addSkip(self, test, reason):
        self._line("ok", test, " # SKIP " + reason)

    def addExpectedFailure(self, test, err):
        self._line("ok", test)

    def addFailure(self, test, err):
        self._line("not ok", test, text=self._exc_info_to_string(err, test))

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self._line("not ok", subtest, text=self._exc_info_to_string(err, test))


def main():
    if "--tap" not in sys.argv:
        unittest.main()
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    result = _Tap()
    suite.run(result)
    print("1..%d" % result.count)
    sys.exit(0)
