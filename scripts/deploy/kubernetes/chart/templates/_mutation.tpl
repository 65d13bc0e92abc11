{{- /* What is added to a pod, in CEL: lists are merged by name, so what a container has already stays. */ -}}
{{- define "gpupool.mutation" -}}
Object{
  spec: Object.spec{
    initContainers: [Object.spec.initContainers{
      name: "gpupool-install",
      image: {{ .Values.image | quote }},
      volumeMounts: [Object.spec.initContainers.volumeMounts{name: "gpupool", mountPath: "/target"}],
      securityContext: Object.spec.initContainers.securityContext{
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: Object.spec.initContainers.securityContext.capabilities{drop: ["ALL"]}
      }
    }],
    containers: object.spec.containers.map(one, Object.spec.containers{
      name: one.name,
      env: [
        Object.spec.containers.env{
          name: "LD_PRELOAD",
          value: "/opt/gpupool/lib/libgpupool.so" + (
            has(one.env) && one.env.exists(set, set.name == "LD_PRELOAD" && has(set.value) && set.value != "")
            ? ":" + one.env.filter(set, set.name == "LD_PRELOAD")[0].value : "")
        },
        Object.spec.containers.env{name: "GPUPOOL_CONFIG", value: "/etc/gpupool/gpupool.json"}
      ]
      {{- range $name, $value := .Values.environment }}
      + (has(one.env) && one.env.exists(set, set.name == {{ $name | quote }}) ? []
         : [Object.spec.containers.env{name: {{ $name | quote }}, value: {{ $value | quote }}}])
      {{- end }}
      + (variables.claim == "" ? [] : [
        Object.spec.containers.env{name: "POOL_NODE_NAME", valueFrom: Object.spec.containers.env.valueFrom{
          fieldRef: Object.spec.containers.env.valueFrom.fieldRef{fieldPath: "spec.nodeName"}}},
        Object.spec.containers.env{name: "POOL_POD_NAME", valueFrom: Object.spec.containers.env.valueFrom{
          fieldRef: Object.spec.containers.env.valueFrom.fieldRef{fieldPath: "metadata.name"}}},
        Object.spec.containers.env{name: "GPUPOOL_STATS_PATH", value: "/var/lib/gpupool/$(POOL_NODE_NAME)-$(POOL_POD_NAME)-%r-%p.json"},
        Object.spec.containers.env{name: "GPUPOOL_STATS_PAGES", value: "/var/lib/gpupool"}
      ]),
      volumeMounts: [
        Object.spec.containers.volumeMounts{name: "gpupool", mountPath: "/opt/gpupool", readOnly: true},
        Object.spec.containers.volumeMounts{name: "gpupool-config", mountPath: "/etc/gpupool", readOnly: true}
      ] + (variables.claim == "" ? [] : [
        Object.spec.containers.volumeMounts{name: "gpupool-reports", mountPath: "/var/lib/gpupool"}
      ])
    }),
    volumes: [
      Object.spec.volumes{name: "gpupool", emptyDir: Object.spec.volumes.emptyDir{}},
      Object.spec.volumes{name: "gpupool-config", configMap: Object.spec.volumes.configMap{name: "gpupool", optional: true}}
    ] + (variables.claim == "" ? [] : [
      Object.spec.volumes{name: "gpupool-reports",
        persistentVolumeClaim: Object.spec.volumes.persistentVolumeClaim{claimName: variables.claim}}
    ])
  }
}
{{- end -}}
