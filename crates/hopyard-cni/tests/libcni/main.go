// Calls GC as a runtime does that knows which attachments are valid: `cnitool gc` passes none.
package main

import (
	"context"
	"os"
	"strings"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
)

func main() {
	list, err := libcni.LoadConfList(os.Getenv("NETCONFPATH"), os.Args[1])
	valid := []types.GCAttachment{}
	for _, id := range os.Args[2:] {
		valid = append(valid, types.GCAttachment{ContainerID: id, IfName: "eth0"})
	}
	if err == nil {
		config := libcni.NewCNIConfig(strings.Split(os.Getenv("CNI_PATH"), ":"), nil)
		err = config.GCNetworkList(context.Background(), list, &libcni.GCArgs{ValidAttachments: valid})
	}
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
}
