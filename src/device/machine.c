#include "device/machine.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* NVML's own types and limits, from its documentation (nvml.h); nvmlReturn_t 0 is success. */
typedef void *nvml_device;

enum { NVML_NAME = 96, NVML_VERSION = 80 };

struct nvml {
	void *library;
	int (*init)(void);
	int (*shutdown)(void);
	int (*count)(unsigned *n);
	int (*handle)(unsigned i, nvml_device *d);
	int (*name)(nvml_device d, char *out, unsigned len);
	int (*driver)(char *out, unsigned len);
};

static bool nvml_open(struct nvml *n)
{
	const struct {
		const char *name;
		void *at;
	} symbols[] = {
		{"nvmlInit_v2", &n->init},
		{"nvmlShutdown", &n->shutdown},
		{"nvmlDeviceGetCount_v2", &n->count},
		{"nvmlDeviceGetHandleByIndex_v2", &n->handle},
		{"nvmlDeviceGetName", &n->name},
		{"nvmlSystemGetDriverVersion", &n->driver},
	};

	n->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	for (size_t i = 0; n->library && i < COUNT(symbols); i++) {
		void *found = dlsym(n->library, symbols[i].name);

		if (found == NULL)
			return false;
		memcpy(symbols[i].at, &found, sizeof found); /* ISO C has no cast from object to function */
	}
	return n->library != NULL;
}

void machine_facts(struct machine *ret)
{
	struct nvml n = {0};
	char text[NVML_NAME + 1];
	unsigned count = 0;

	record_init(&machine_record, ret);
	if (!nvml_open(&n)) {
		ret->note = xstrdup(access("/dev/nvidiactl", F_OK) == 0 ?
				    "the NVIDIA device is there, but its management library (libnvidia-ml.so.1) is not" :
				    "this machine has no NVIDIA driver");
	} else if (n.init() != 0) {
		ret->note = xstrdup("the NVIDIA driver is installed, but does not answer");
	} else {
		if (n.driver(text, NVML_VERSION) == 0)
			ret->driver = xstrdup(text);
		n.count(&count);
		for (unsigned i = 0; i < count && i < 64; i++) {
			nvml_device d;

			if (n.handle(i, &d) == 0 && n.name(d, text, NVML_NAME) == 0)
				strs_add(&ret->gpus, text);
		}
		if (count == 0)
			ret->note = xstrdup("the NVIDIA driver shows no GPU");
		n.shutdown();
	}
	if (n.library)
		dlclose(n.library);
}
