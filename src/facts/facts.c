#include "facts/facts.h"

RECORD(, place, FIELD(STR, place, file), FIELD(INT, place, line), FIELD(STR, place, function),
       FIELD(STR, place, code));

RECORD(, tensor, FIELD(STR, tensor, role), FIELD(STR, tensor, name), FIELD(INTS, tensor, shape),
       FIELD(STR, tensor, dtype), FIELD(STR, tensor, device), FIELD(VALUE, tensor, min),
       FIELD(VALUE, tensor, max));

RECORD(, assertion, FIELD(INT, assertion, id), FIELD(STR, assertion, source), FIELD(STR, assertion, kernel),
       FIELD(STR, assertion, signature), FIELD(STR, assertion, condition), FIELD(STR, assertion, text),
       FIELD(STR, assertion, form), FIELD(INT, assertion, rank), FIELD(INT, assertion, count),
       FIELD(INT, assertion, blocks), FIELD(INT, assertion, threads), FIELD(INTS, assertion, first_block),
       FIELD(INTS, assertion, first_thread), FIELD(INTS, assertion, pairs), FIELD(BOOL, assertion, more));

RECORD(, failure, FIELD(STR, failure, type), FIELD(STR, failure, text), FIELD(INT, failure, code),
       FIELD(INT, failure, rank), FIELD(BOOL, failure, late));

RECORD(, traceback, FIELD(STR, traceback, type), FIELD(STR, traceback, text), FIELD(INT, traceback, rank),
       FIELD_OF(LIST, traceback, frames, &place_record));

RECORD(, process, FIELD(INT, process, pid), FIELD(STR, process, python), FIELD(STR, process, torch),
       FIELD(STR, process, cuda), FIELD(STRS, process, devices), FIELD(INT, process, rank),
       FIELD(INT, process, ranks));

RECORD(, element, FIELD(INTS, element, at));

RECORD(, finding, FIELD(INT, finding, pid), FIELD(STR, finding, cause), FIELD(STR, finding, op),
       FIELD_OF(RECORD, finding, tensor, &tensor_record), FIELD(VALUE, finding, low),
       FIELD(VALUE, finding, high), FIELD(VALUES, finding, bad_values), FIELD(INT, finding, bad_count),
       FIELD_OF(LIST, finding, bad_elements, &element_record), FIELD_OF(RECORD, finding, place, &place_record),
       FIELD_OF(LIST, finding, stack, &place_record), FIELD(STR, finding, module), FIELD(STR, finding, detail),
       FIELD(STR, finding, expect), FIELD(BOOL, finding, seen), FIELD(BOOL, finding, silent));

RECORD(, checked, FIELD(INT, checked, pid), FIELD(STR, checked, op), FIELD(INT, checked, calls),
       FIELD(INT, checked, unseen));

RECORD(, scan, FIELD(STR, scan, loader), FIELD(STR, scan, dataset), FIELD(INT, scan, epoch),
       FIELD(INT, scan, batch), FIELD(INTS, scan, samples), FIELD(VALUES, scan, values),
       FIELD(INTS, scan, found), FIELD(INT, scan, total_bad_samples), FIELD(INT, scan, scanned),
       FIELD(INT, scan, size), FIELD(BOOL, scan, complete), FIELD(STR, scan, field), FIELD(STR, scan, how),
       FIELD(STR, scan, problem), FIELD(INT, scan, errors));

RECORD(, raised, FIELD(INT, raised, pid), FIELD(STR, raised, type), FIELD(STR, raised, text),
       FIELD_OF(LIST, raised, frames, &place_record));

RECORD(, operand, FIELD(INT, operand, pid), FIELD(STR, operand, op),
       FIELD_OF(RECORD, operand, tensor, &tensor_record), FIELD(VALUE, operand, low), FIELD(VALUE, operand, high),
       FIELD(INT, operand, elements), FIELD(BOOL, operand, bad), FIELD(INT, operand, bad_count), FIELD(INT, operand, nans),
       FIELD(INT, operand, infs), FIELD(INT, operand, zeros), FIELD(INTS, operand, histogram),
       FIELD_OF(RECORD, operand, place, &place_record), FIELD(STR, operand, module), FIELD(INT, operand, calls));

RECORD(, excerpt, FIELD(STR, excerpt, file), FIELD(INT, excerpt, first), FIELD(STRS, excerpt, lines));

RECORD(, run, FIELD(STR, run, name), FIELD(STRS, run, argv), FIELD(STR, run, cwd), FIELD(INT, run, pid));

RECORD(, ended, FIELD(STR, ended, name), FIELD(INT, ended, exit_status), FIELD(INT, ended, signal),
       FIELD(SECONDS, ended, seconds), FIELD(STR, ended, stopped));

RECORD(, step_result, FIELD(STR, step_result, id), FIELD(STR, step_result, status),
       FIELD(STR, step_result, finding), FIELD(SECONDS, step_result, seconds));

RECORD(, machine, FIELD(STR, machine, driver), FIELD(STRS, machine, gpus), FIELD(STR, machine, note));

RECORD(, note, FIELD(STR, note, text));
